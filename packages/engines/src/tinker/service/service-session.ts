import { isRecord, TrainError } from '@aworld-train/core'
import type { TinkerClient } from '../client/tinker-client.ts'
import { encodeForwardBackward, type ForwardBackward } from '../wire/messages.ts'

export interface LoraSettings {
  /** Default 32. */
  readonly rank?: number | undefined
  /** Seed of the starting weights of the adapter. */
  readonly seed?: number | undefined
  /** The modules that have an adapter. Default: the server's choice. */
  readonly trainAttention?: boolean | undefined
  readonly trainMlp?: boolean | undefined
  readonly trainUnembedding?: boolean | undefined
}

type Json = Readonly<Record<string, unknown>>

/** A submitted request of a model. `result` can be awaited once or never. */
export interface Submitted {
  result(): Promise<Buffer | Json>
}

/** A LoRA adapter on the service, with the count of its requests. */
export interface ServiceAdapter {
  readonly id: string
  submit(type: string, body: Json): Promise<Submitted>
  submitForwardBackward(request: Omit<ForwardBackward, 'modelId' | 'seqId'>): Promise<Submitted>
  /** Frees its place on the service. Saved weights stay. */
  unload(): Promise<void>
}

const heartbeatMs = 10_000

/** A session of the service, kept alive until it is closed. */
export interface ServiceSession {
  createAdapter(): Promise<ServiceAdapter>
  close(): void
}

export interface ServiceSessionOptions {
  readonly client: TinkerClient
  readonly baseModel: string
  readonly lora: LoraSettings
}

export async function openSession({ client, baseModel, lora }: ServiceSessionOptions): Promise<ServiceSession> {
  const session = await client.call<{ session_id: string }>('/api/v1/create_session', {
    tags: [],
    user_metadata: {},
    sdk_version: wireVersion,
    type: 'create_session',
  })
  const beat = { session_id: session.session_id, type: 'session_heartbeat' }
  // A failed beat shows in the next call, which has a deadline of its own.
  const timer = setInterval(() => void client.call('/api/v1/session_heartbeat', beat).catch(() => {}), heartbeatMs)
  timer.unref()
  let models = 0

  async function createAdapter(): Promise<ServiceAdapter> {
    const config = toLoraConfig(lora)
    const submitted = await client.submit('/api/v1/create_model', {
      session_id: session.session_id,
      model_seq_id: models++,
      base_model: baseModel,
      lora_config: config,
      type: 'create_model',
    })
    const created = await client.result({ id: submitted.request_id, what: 'create_model' })
    const answers = [submitted as Json, Buffer.isBuffer(created) ? {} : created]
    const id = answers.map((answer) => answer['model_id']).find((each) => typeof each === 'string') as string | undefined
    if (id === undefined)
      throw new TrainError('POLICY_RESPONSE_INVALID', `${client.url} made a model without a model_id; check its version.`)
    const model = toAdapter(client, id)
    const dropped = droppedSettings(config, answers)
    if (dropped.length > 0) {
      await model.unload().catch(() => {})
      const message = `${client.url} does not train what tinker.lora asks for: ${dropped.join(', ')}; leave these settings out, or use a server that has them.`
      throw new TrainError('CONFIG_INVALID', message, { details: { dropped } })
    }
    return model
  }

  return { createAdapter, close: () => clearInterval(timer) }
}

/** Version of the Python SDK whose protocol is spoken here. */
export const wireVersion = '0.38.0'

function toLoraConfig({ rank = 32, seed, trainAttention, trainMlp, trainUnembedding }: LoraSettings): Json {
  const settings = { rank, seed, train_attn: trainAttention, train_mlp: trainMlp, train_unembed: trainUnembedding }
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined))
}

/** Settings whose value in the server's answers differs, or that it leaves out while it shows others. */
function droppedSettings(wanted: Json, answers: readonly Json[]): string[] {
  const shown = answers.map((answer) => answer['lora_config']).filter(isRecord)
  return Object.entries(wanted).flatMap(([name, value]) => {
    const values = shown.map((config) => config[name])
    const differs = values.find((each) => each !== undefined && each !== null && each !== value)
    if (differs !== undefined) return [`${name} is ${value} here and ${differs} there`]
    return name === 'seed' || shown.length === 0 || values.includes(value) ? [] : [`${name} is ${value} here and nothing there`]
  })
}

function toAdapter(client: TinkerClient, id: string): ServiceAdapter {
  // The service orders the requests of a model by this number, and recognises a repeated one by it.
  let sequence = 1
  const toResult = (what: string, submitted: { readonly request_id: string }): Submitted => ({
    result: () => client.result({ id: submitted.request_id, what }),
  })
  return {
    id,
    async submit(type, body) {
      return toResult(type, await client.submit(`/api/v1/${type}`, { ...body, model_id: id, seq_id: sequence++, type }))
    },
    async submitForwardBackward(request) {
      const body = encodeForwardBackward({ ...request, modelId: id, seqId: sequence++ })
      return toResult(request.forwardOnly ? 'forward' : 'forward_backward', await client.submit('/api/v1/forward_backward', body))
    },
    async unload() {
      await client.submit('/api/v1/unload_model', { model_id: id, type: 'unload_model' })
    },
  }
}
