import { describeModel, type Learner, type ModelDescription, orAborted, type TokenEngine, TrainError } from '@aworld-train/core'
import { createTinkerClient, type TinkerClient, type TinkerService } from './client/tinker-client.ts'
import type { LossReduction } from './learner/loss-request.ts'
import { createPolicy } from './learner/policy.ts'
import { createTokenEngine } from './sampler/token-engine.ts'
import { serviceModels } from './service/describe-service.ts'
import { type LoraSettings, openSession } from './service/service-session.ts'

export interface TinkerEngineOptions extends TinkerService {
  /** A Hugging Face folder with tokenizer and config.json of the base model. It needs no weights. */
  readonly model: string
  /** Name of the policy. */
  readonly name: string
  /** The service's name of the model. It may be left out if the service has only one. */
  readonly baseModel?: string | undefined
  readonly lora?: LoraSettings | undefined
  /** How the service sums losses. Default: `sum` at Thinking Machines' own and `row-mean` elsewhere. */
  readonly reduction?: LossReduction | undefined
  /** Ends every wait for the service; opening and the learner's calls reject with its reason. A sample has a signal of its own. */
  readonly signal?: AbortSignal | undefined
}

/** A LoRA adapter on a Tinker service, with its sampler and its learner. */
export interface TinkerEngine {
  readonly engine: TokenEngine
  readonly learner: Learner
  readonly service: { readonly url: string; readonly baseModel: string; readonly rank: number }
  /** Ends calls in flight and frees the adapter's place on the service. */
  close(): Promise<void>
}

/**
 * Opens a session, makes an adapter and publishes it as version 0. Rejects with CONFIG_INVALID, POLICY_UNAVAILABLE or POLICY_RATE_LIMITED.
 */
export async function createTinkerEngine(options: TinkerEngineOptions): Promise<TinkerEngine> {
  const { signal = new AbortController().signal } = options
  signal.throwIfAborted()
  const client = createTinkerClient(options)
  const opening = open(client, { ...options, signal })
  try {
    return await orAborted(opening, signal)
  } catch (error) {
    // Closing the client ends the calls under way, and the opening too.
    await client.close()
    await opening.then((opened) => opened.close()).catch(() => {})
    throw error
  }
}

async function open(client: TinkerClient, options: TinkerEngineOptions & { readonly signal: AbortSignal }): Promise<TinkerEngine> {
  await using stack = new AsyncDisposableStack()
  stack.defer(() => client.close())
  const { baseModel, contextLength } = await chooseModel(client, options.baseModel)
  const described = await describeModel({ name: options.name, directory: options.model })
  const model: ModelDescription = {
    ...described,
    contextLength: Math.min(described.contextLength, contextLength ?? Number.POSITIVE_INFINITY),
  }
  const lora = options.lora ?? {}
  const session = stack.adopt(await openSession({ client, baseModel, lora }), (each) => each.close())
  const reduction = options.reduction ?? (new URL(client.url).hostname.includes('thinkingmachines') ? 'sum' : 'row-mean')
  const place = { service: client.url, baseModel, rank: lora.rank ?? 32 }
  const policy = stack.adopt(await createPolicy({ session, model, reduction, place, signal: options.signal }), (each) => each.close())
  const engine = createTokenEngine({ client, model, weights: policy.weights })
  const owned = stack.move()
  const close = () => {
    engine.end()
    return owned.disposeAsync()
  }
  return { engine: { ...engine, close }, learner: policy.learner, service: { url: client.url, baseModel, rank: place.rank }, close }
}

async function chooseModel(client: TinkerClient, wanted: string | undefined) {
  const models = await serviceModels(client)
  const names = models.map(({ name }) => name)
  const [first] = models
  const found = wanted === undefined ? (models.length === 1 ? first : undefined) : models.find(({ name }) => name === wanted)
  if (found) return { baseModel: found.name, contextLength: found.contextLength }
  const problem = wanted === undefined ? 'trains several models, or names none' : `does not train "${wanted}"`
  const message = `${client.url} ${problem}; set tinker.baseModel to one of: ${names.join(', ') || '(none named)'}.`
  throw new TrainError('CONFIG_INVALID', message, { details: { models: names } })
}
