import { resolve } from 'node:path'
import { loadChatModel } from '@aworld-train/chat'
import type { EngineHealth } from '@aworld-train/core'
import { createLocalEngine } from '@aworld-train/engine-local'
import {
  createSglangChatEngine,
  createSglangTokenEngine,
  createVllmChatEngine,
  createVllmTokenEngine,
  type Fleet,
} from '@aworld-train/engine-remote'
import type { ModelRoute } from '@aworld-train/gateway'
import { TrainError } from '@aworld-train/protocol'
import { toFrozenRoutes } from 'aworld-train'
import { describeModel } from './describe-model.ts'
import { readSecret } from './read-serve-config.ts'
import type { ServeConfig, ServeModel } from './serve-config.ts'

export interface OpenedModel {
  readonly name: string
  readonly route: ModelRoute
  /** One line for a person. */
  readonly description: string
}

export interface OpenModelsOptions {
  readonly config: ServeConfig
  /** Folder that paths are relative to. */
  readonly directory: string
  /** Closes what is opened. */
  readonly stack: AsyncDisposableStack
}

type RemoteModel = Extract<ServeModel, { readonly kind: 'vllm' | 'sglang' }>

/** The state of a fleet as `/ready` and `/metrics` want it. Calls wait for the fleet, not for one of its servers. */
export function fleetHealth(fleet: Fleet): EngineHealth {
  const { waiting, longestWaitMs } = fleet.counts()
  const states = fleet.replicas()
  const replicas = states.map(({ server, inFlight, out }, index) => ({
    name: new URL(server).host,
    ready: out === null,
    inFlight,
    queued: index === 0 ? waiting : 0,
    oldestQueuedMs: index === 0 ? longestWaitMs : 0,
  }))
  const ready = replicas.some((replica) => replica.ready)
  const reasons = states.map(({ server, out }) => `${new URL(server).host} ${out ?? 'takes calls'}`)
  return { ready, reason: ready ? null : `no server takes calls (${reasons.join(', ')})`, replicas }
}

async function openRemote(name: string, model: RemoteModel, { config, directory, stack }: OpenModelsOptions): Promise<OpenedModel> {
  const { kind, urls, mode, limits, served, apiKey } = model
  const fleet = {
    replicas: urls,
    ...limits,
    ...(served !== null && { served }),
    ...(apiKey !== null && { apiKey: readSecret(apiKey, `models.${name}.apiKey`) }),
  }
  const description = `${kind}, ${mode} engine, ${urls.length} ${urls.length === 1 ? 'server' : 'servers'}: ${urls.join(', ')}`
  if (mode === 'chat') {
    const contextLength =
      model.contextLength ?? (model.folder === null ? null : (await described(name, model.folder, null, directory)).contextLength)
    if (contextLength === null)
      throw new TrainError('CONFIG_INVALID', `models.${name} needs "contextLength", or a "folder" whose config.json has it.`)
    const create = kind === 'vllm' ? createVllmChatEngine : createSglangChatEngine
    const engine = stack.adopt(await create({ ...fleet, model: { name: served ?? name, contextLength } }), (each) => each.close())
    return { name, route: { kind: 'chat', engine: { ...engine, health: () => fleetHealth(engine.fleet) } }, description }
  }
  if (model.folder === null)
    throw new TrainError('CONFIG_INVALID', `models.${name} needs "folder", the tokenizer and template of its model; or set mode: chat.`)
  const about = await described(name, model.folder, model.contextLength, directory)
  const create = kind === 'vllm' ? createVllmTokenEngine : createSglangTokenEngine
  const engine = stack.adopt(await create({ ...fleet, model: about }), (each) => each.close())
  const chat = await loadChatModel({
    directory: about.directory,
    stopTokenIds: about.stopTokenIds,
    history: config.history,
    templateArguments: model.templateArguments,
  })
  return { name, route: { kind: 'token', engine: { ...engine, health: () => fleetHealth(engine.fleet) }, chat }, description }
}

const described = (name: string, folder: string, contextLength: number | null, directory: string) =>
  describeModel({ name, directory: resolve(directory, folder), contextLength })

async function openModel(name: string, model: ServeModel, options: OpenModelsOptions): Promise<OpenedModel> {
  if (model.kind === 'local') {
    const path = resolve(options.directory, model.path)
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
    return { name, route: { kind: 'token', engine, chat }, description: `${path}, ${tier.simd} SIMD, ${tier.threads} threads` }
  }
  if (model.kind !== 'frozen') return await openRemote(name, model, options)
  const { kind: _, ...settings } = model
  const route = toFrozenRoutes({ [name]: settings }, options.directory)[name]!
  return { name, route, description: `frozen, ${model.model} at ${model.baseUrl}` }
}

/** Opens every model of a configuration, in its order. */
export async function openModels(options: OpenModelsOptions): Promise<OpenedModel[]> {
  const opened: OpenedModel[] = []
  for (const [name, model] of Object.entries(options.config.models)) opened.push(await openModel(name, model, options))
  return opened
}
