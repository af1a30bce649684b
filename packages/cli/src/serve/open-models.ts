import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { loadChatModel } from '@aworld-train/chat'
import { describeModel, TrainError } from '@aworld-train/core'
import { createLocalEngine } from '@aworld-train/engines/local'
import { createSglangChatEngine, createSglangTokenEngine, createVllmChatEngine, createVllmTokenEngine } from '@aworld-train/engines/remote'
import type { ModelRoute, PublishWeights } from '@aworld-train/gateway'
import { type ChannelEngine, createChannelEngine } from '@aworld-train/rollout'
import { keepTokenizer } from '@aworld-train/store'
import { policiesIn, toFrozenRoutes } from '@aworld-train/training'
import { createFleets, type FleetOf, publishTo } from './open-fleets.ts'
import type { ChannelModel, RemoteModel, ServeConfig, ServeModel } from './serve-config.ts'

/** A model that trainer clients sample, with its settings. */
export interface OpenedChannel {
  readonly engine: ChannelEngine
  readonly settings: ChannelModel
}

export interface ServedModel {
  readonly name: string
  readonly route: ModelRoute
  /** One line for people. */
  readonly description: string
  /** Updates its weights; `null` if they cannot be updated. */
  readonly publish: PublishWeights | null
  readonly channel?: OpenedChannel | undefined
}

export interface OpenModelsOptions {
  readonly config: ServeConfig
  /** Folder that paths are relative to. */
  readonly directory: string
  /** Folder of the recording; `null` records nothing. */
  readonly recording: string | null
  /** Closes everything that is opened. */
  readonly stack: AsyncDisposableStack
}

const renderedBy = ({
  maxPromptBytes,
  toolAnswers,
  malformedCalls,
}: Pick<ChannelModel, 'maxPromptBytes' | 'toolAnswers' | 'malformedCalls'>) => ({
  maxPromptBytes,
  toolAnswers,
  malformedCalls,
})

async function openRemote(
  name: string,
  model: RemoteModel,
  { config, directory }: OpenModelsOptions,
  fleetOf: FleetOf,
): Promise<ServedModel> {
  const { kind, urls, mode, policy, served } = model
  const shared = await fleetOf(name, model)
  const { fleet } = shared
  const publish: PublishWeights = (publication, signal) => publishTo(shared, { name, policy }, publication, signal)
  const adapter = policy === null ? '' : `adapter ${policy}, `
  const description = `${kind}, ${adapter}${mode} engine, ${urls.length} ${urls.length === 1 ? 'server' : 'servers'}: ${urls.join(', ')}`
  const named = { fleet, ...(served !== null && { served }) }
  if (mode === 'chat') {
    if (model.toolAnswers.maxTokens !== null)
      throw new TrainError(
        'CONFIG_INVALID',
        `models.${name}.toolAnswers cuts prompts that the gateway renders, and in mode "chat" the server does; set mode: token, or leave it out.`,
      )
    const contextLength =
      model.contextLength ?? (model.folder === null ? null : (await described(name, model.folder, null, directory)).contextLength)
    if (contextLength === null)
      throw new TrainError('CONFIG_INVALID', `models.${name} needs "contextLength", or a "folder" whose config.json has it.`)
    const create = kind === 'vllm' ? createVllmChatEngine : createSglangChatEngine
    const engine = await create({ ...named, ...(policy !== null && { policy }), model: { name: served ?? name, contextLength } })
    return { name, route: { kind: 'chat', engine }, description, publish }
  }
  if (model.folder === null)
    throw new TrainError('CONFIG_INVALID', `models.${name} needs "folder", the tokenizer and template of its model; or set mode: chat.`)
  const about = await described(name, model.folder, model.contextLength, directory)
  const options = { ...named, model: about }
  const engine =
    model.kind === 'vllm' ? await createVllmTokenEngine({ ...options, route: model.route }) : await createSglangTokenEngine(options)
  const chat = await loadChatModel({
    directory: about.directory,
    stopTokenIds: about.stopTokenIds,
    history: config.history,
    templateArguments: model.templateArguments,
  })
  return {
    name,
    route: { kind: 'token', engine, chat, ...renderedBy(model), ...(policy !== null && { policy }) },
    description,
    publish,
  }
}

const described = (name: string, folder: string, contextLength: number | null, directory: string) =>
  describeModel({ name, directory: resolve(directory, folder), contextLength })

function openChannel(name: string, settings: ChannelModel, { config, directory, recording, stack }: OpenModelsOptions): ServedModel {
  const path = settings.path === null ? null : resolve(directory, settings.path)
  const engine = stack.adopt(
    createChannelEngine({
      name,
      directory: path,
      filesDirectory: recording === null ? null : join(recording, 'tokenizer'),
      history: config.history,
      onWarning: ({ message }) => void process.stderr.write(`${message}\n`),
      ...(recording !== null && { onModel: (folder: string) => keepTokenizer(join(recording, 'rollouts'), folder) }),
    }),
    (each) => each.close(),
  )
  const tokenizer = path === null ? 'its tokenizer is sent by it' : `tokenizer of ${path}`
  return {
    name,
    route: { kind: 'token', engine, chat: engine.chat, ...renderedBy(settings) },
    description: `sampled by the trainer that connects, ${tokenizer}`,
    publish: null,
    channel: { engine, settings },
  }
}

async function openModel(name: string, model: ServeModel, options: OpenModelsOptions, fleetOf: FleetOf): Promise<ServedModel> {
  if (model.kind === 'local') {
    const path = resolve(options.directory, model.path)
    const policies = policiesIn(path, 'config.json')
    if (policies.length > 0 && !existsSync(join(path, 'config.json'))) {
      const message = `models.${name}.path is a checkpoint of several policies, ${policies.map((each) => `"${each}"`).join(', ')}; name the folder of one, such as ${join(path, policies[0]!)}, or one that export --policy has written.`
      throw new TrainError('CONFIG_INVALID', message)
    }
    const local = options.stack.adopt(
      await createLocalEngine({
        model: path,
        name,
        simd: model.simd,
        ...(model.threads !== null && { threads: model.threads }),
        ...(model.maxRows !== null && { maxRows: model.maxRows }),
      }),
      (each) => each.close(),
    )
    const { engine, tier } = local
    const chat = await loadChatModel({
      directory: path,
      stopTokenIds: engine.model.stopTokenIds,
      history: options.config.history,
      templateArguments: model.templateArguments,
    })
    return {
      name,
      route: { kind: 'token', engine, chat, ...renderedBy(model) },
      description: `${path}, ${tier.simd} SIMD, ${tier.threads} threads`,
      publish: null,
    }
  }
  if (model.kind === 'channel') return openChannel(name, model, options)
  if (model.kind !== 'frozen') return await openRemote(name, model, options, fleetOf)
  const { kind: _, ...settings } = model
  const route = toFrozenRoutes({ [name]: settings }, options.directory)[name]!
  return { name, route, description: `frozen, ${model.model} at ${model.baseUrl}`, publish: null }
}

/** Opens every model of a configuration, in its order. */
export async function openModels(options: OpenModelsOptions): Promise<ServedModel[]> {
  const opened: ServedModel[] = []
  const fleetOf = createFleets(options.stack, options.directory)
  for (const [name, model] of Object.entries(options.config.models)) opened.push(await openModel(name, model, options, fleetOf))
  return opened
}
