import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { errorMessage, isRecord, type Learner, type TokenEngine } from '@aworld-train/core'
import { decodeForwardBackwardCall, encodeLogprobs, encodeSamples, type ForwardBackwardCall } from './server-messages.ts'
import { type AccumulatedCall, type ServerReduction, toUpdate } from './to-update.ts'

/** Fresh weights of one adapter. */
export interface TinkerServerPolicy {
  readonly engine: TokenEngine
  readonly learner: Learner
  close(): Promise<void>
}

/** An answer of a test in place of the server's. `drop` closes the connection, and `hang` never answers. */
export type TinkerAnswer = { readonly status: number; readonly body?: string | Buffer; readonly type?: string } | 'drop' | 'hang'

export interface TinkerCall {
  /** The last part of the path, such as `forward_backward`. */
  readonly name: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly json: Readonly<Record<string, unknown>>
  /** The request whose result a `retrieve_future` asks for. */
  readonly future: string | undefined
}

export interface TinkerServerOptions {
  /** Called for each model that is made. Its weights are equal every time. */
  readonly createPolicy: () => Promise<TinkerServerPolicy>
  readonly baseModel: string
  /** Folder for checkpoints. */
  readonly directory: string
  /** Most models at once. Default 4. */
  readonly maxModels?: number | undefined
  /** The required key. By default any key is accepted. */
  readonly apiKey?: string | undefined
  /** How losses of tokens are summed: as SkyRL does, or as Thinking Machines' service does. */
  readonly reduction?: ServerReduction | undefined
  /** Milliseconds that a poll for a result is held before it is answered with 408. Default 200. */
  readonly holdMs?: number | undefined
}

/** A server of the Tinker protocol over real policies that tells a test about its calls. */
export interface TinkerServer {
  readonly url: string
  /** Every call so far. */
  readonly calls: readonly TinkerCall[]
  /** Number of loaded models. */
  models(): number
  /** Number of rows and tokens that were sent for gradients and for logprobs so far. */
  sent(): { readonly rows: number; readonly tokens: number }
  /** Sets a function that answers before the server does. `null` lets the server answer. */
  intercept(answer: ((call: TinkerCall) => TinkerAnswer | null) | null): void
  close(): Promise<void>
}

interface Model {
  readonly id: string
  readonly policy: TinkerServerPolicy
  readonly accumulated: AccumulatedCall[]
  last: Promise<unknown>
  requests: number
  sampler: string | null
  readonly names: Set<string>
}

interface Future {
  readonly name: string
  readonly result: Promise<Buffer | object>
}

/** An HTTP error of the server. */
class Refusal extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

const idPattern = /^[a-zA-Z0-9_-]{1,255}$/

/**
 * Serves the part of the Tinker protocol that trainers use, as SkyRL 0.4 does: JSON, protocol buffers for gradients and samples, one slot a
 * model. It is stricter where SkyRL silently goes wrong: it refuses numbers that are not finite, and older sampler paths.
 */
export async function startTinkerServer(options: TinkerServerOptions): Promise<TinkerServer> {
  const { baseModel, directory, maxModels = 4, apiKey, reduction = 'row-mean', holdMs = 200 } = options
  const calls: TinkerCall[] = []
  const models = new Map<string, Model>()
  const futures = new Map<string, Future>()
  const sessions = new Set<string>()
  let modelCount = 0
  let modelsInMaking = 0
  let [sentRows, sentTokens] = [0, 0]
  let interceptor: ((call: TinkerCall) => TinkerAnswer | null) | null = null

  const modelOf = (id: unknown): Model => {
    const model = models.get(String(id))
    if (!model) throw new Refusal(404, `Model '${id}' not found`)
    return model
  }

  function future(name: string, work: Promise<Buffer | object>): { request_id: string } {
    const id = String(futures.size + 1)
    work.catch(() => {})
    futures.set(id, { name, result: work })
    return { request_id: id }
  }

  /** Runs work of one model in the order of its requests. */
  function inTurn(model: Model, name: string, work: () => Promise<Buffer | object>) {
    model.requests++
    const result = model.last.then(work)
    model.last = result.catch(() => {})
    return future(name, result)
  }

  async function createModel(id: string, lora: Readonly<Record<string, unknown>>): Promise<object> {
    if (models.size + modelsInMaking >= maxModels) throw new Refusal(400, `Maximum number of LoRA adapters (${maxModels}) reached`)
    if (Number(lora['rank']) > 32) throw new Refusal(400, `LoRA rank ${lora['rank']} must be between 1 and 32`)
    modelsInMaking++
    const policy = await options.createPolicy().finally(() => modelsInMaking--)
    models.set(id, { id, policy, accumulated: [], last: Promise.resolve(), requests: 0, sampler: null, names: new Set() })
    const { rank, seed = 0 } = lora
    return {
      model_id: id,
      base_model: baseModel,
      lora_config: { rank, alpha: 32, seed, train_attn: true, train_mlp: true, train_unembed: false },
    }
  }

  function forwardBackward(body: Buffer): object {
    let call: ForwardBackwardCall
    try {
      call = decodeForwardBackwardCall(body)
    } catch (error) {
      throw new Refusal(422, `Invalid proto forward_backward body: ${errorMessage(error)}`)
    }
    const inputs = call.rows.flatMap((row) => Object.values(row.inputs).map((values) => ({ values, length: row.tokens.length })))
    if (inputs.some(({ values, length }) => values.length !== length)) throw new Refusal(422, 'A tensor has another length than its row.')
    if (inputs.some(({ values }) => !values.every(Number.isFinite))) throw new Refusal(422, 'A tensor is not finite.')
    const model = modelOf(call.modelId)
    sentRows += call.rows.length
    sentTokens += call.rows.reduce((sum, { tokens }) => sum + tokens.length, 0)
    return inTurn(model, 'forward_backward', async () => {
      const rows = call.rows.map(({ tokens, inputs }) => Int32Array.of(...tokens, inputs['target_tokens']!.at(-1)!))
      const logprobs = (await model.policy.learner.logprobs(rows, 1)).map((row) => row.slice(1))
      if (!call.forwardOnly) model.accumulated.push({ ...call, logprobs })
      return encodeLogprobs(logprobs, { 'total_loss:sum': 0 })
    })
  }

  function optimStep(model: Model, adam: Readonly<Record<string, number>>): object {
    return inTurn(model, 'optim_step', async () => {
      const { gradNorm } = await model.policy.learner.update(toUpdate(model.accumulated.splice(0), { adam, reduction }))
      return { metrics: { 'skyrl.ai/grad_norm': gradNorm } }
    })
  }

  function save(model: Model, kind: 'weights' | 'sampler_weights', name: unknown): object {
    if (!idPattern.test(String(name))) throw new Refusal(422, `path "${name}" is no name`)
    const key = `${kind}/${name}`
    if (model.names.has(key)) throw new Refusal(409, `Checkpoint '${name}' already exists for model '${model.id}'`)
    model.names.add(key)
    const path = `tinker://${model.id}/${key}`
    return inTurn(model, kind === 'weights' ? 'save_weights' : 'save_weights_for_sampler', async () => {
      if (kind === 'weights') await model.policy.learner.save(join(directory, model.id, String(name)))
      else {
        await model.policy.learner.publish()
        model.sampler = path
      }
      return { path, type: 'save_weights' }
    })
  }

  function load(model: Model, path: unknown, optimizer: unknown): object {
    if (model.requests > 0) throw new Refusal(400, `LoadWeights is not permitted with seq_id ${model.requests + 1}`)
    const [, source, name] = /^tinker:\/\/([^/]+)\/weights\/([^/]+)$/.exec(String(path)) ?? []
    if (!source || !name) throw new Refusal(400, 'request.path must be in format tinker://source_model_id/weights/checkpoint_id')
    return inTurn(model, 'load_weights', async () => {
      await model.policy.learner.load(join(directory, source, name)).catch(() => {
        throw new Refusal(400, `Checkpoint not found: ${source}/${name}`)
      })
      if (optimizer === false) await model.policy.learner.resetOptimizer()
      return { type: 'load_weights' }
    })
  }

  function sample({ model_path: path, num_samples: count, prompt, sampling_params: params }: Readonly<Record<string, unknown>>): object {
    const model = modelOf(/^tinker:\/\/([^/]+)\//.exec(String(path))?.[1])
    if (path !== model.sampler) throw new Refusal(400, `${path} is an older path: sampling it overwrites the weights that are trained`)
    const { chunks } = prompt as { chunks: { tokens: number[] }[] }
    const { max_tokens, temperature, top_p, top_k, seed } = params as Record<string, number>
    const sampling = { temperature: temperature!, topP: top_p!, topK: Math.max(0, top_k!), maxTokens: max_tokens!, stop: [], seed: 0 }
    const draws = Array.from({ length: Number(count) }, (_, index) =>
      model.policy.engine.generate(
        {
          promptTokenIds: Int32Array.from(chunks.flatMap(({ tokens }) => tokens)),
          sampling,
          // Sample i has the seed + i, so requests with close seeds draw the same tokens.
          random: { seed: seed! + index, task: '', sample: 0, turn: 0 },
          affinity: `${model.id}/${seed! + index}`,
        },
        new AbortController().signal,
      ),
    )
    return future('asample', Promise.all(draws).then(encodeSamples))
  }

  async function retrieve(id: unknown): Promise<Buffer | object> {
    const found = futures.get(String(id))
    if (!found) throw new Refusal(404, 'Future not found')
    const outcome = await Promise.race([
      found.result.catch((error: unknown) => new Refusal(400, errorMessage(error))),
      new Promise<null>((resolve) => setTimeout(() => resolve(null), holdMs).unref()),
    ])
    if (outcome === null) throw new Refusal(408, 'Timeout waiting for result')
    if (outcome instanceof Refusal) throw outcome
    return outcome
  }

  const routes: Readonly<Record<string, (json: Readonly<Record<string, unknown>>, body: Buffer) => Promise<object> | object>> = {
    healthz: () => ({ status: 'ok' }),
    get_server_capabilities: () => ({ supported_models: [{ model_name: baseModel }] }),
    create_session() {
      const id = `session_${sessions.size + 1}`
      sessions.add(id)
      return { session_id: id, type: 'create_session' }
    },
    session_heartbeat({ session_id: id }) {
      if (!sessions.has(String(id))) throw new Refusal(404, 'Session not found')
      return { type: 'session_heartbeat' }
    },
    create_model({ session_id: session, lora_config: lora }) {
      if (!sessions.has(String(session))) throw new Refusal(404, 'Session not found')
      const id = `model_${++modelCount}`
      const config = isRecord(lora) ? lora : {}
      return { model_id: id, lora_config: { rank: config['rank'] }, ...future('create_model', createModel(id, config)) }
    },
    unload_model({ model_id: id }) {
      const model = modelOf(id)
      models.delete(model.id)
      return inTurn(model, 'unload_model', async () => {
        await model.policy.close()
        return { model_id: model.id, type: 'unload_model' }
      })
    },
    forward_backward: (_, body) => forwardBackward(body),
    optim_step: ({ model_id: id, adam_params: adam }) => optimStep(modelOf(id), adam as Record<string, number>),
    save_weights: ({ model_id: id, path }) => save(modelOf(id), 'weights', path),
    save_weights_for_sampler: ({ model_id: id, path }) => save(modelOf(id), 'sampler_weights', path),
    load_weights: ({ model_id: id, path, optimizer }) => load(modelOf(id), path, optimizer),
    asample: (json) => sample(json),
    retrieve_future: ({ request_id: id }) => retrieve(id),
    '': () => ({ name: 'Tinker double', version: '1' }),
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>))
    const name = (request.url ?? '').replace(/^\/(api\/v1\/)?/, '')
    const isProtobuf = request.headers['content-type'] === 'application/x-protobuf'
    const json = body.length > 0 && !isProtobuf ? (JSON.parse(body.toString('utf8')) as Record<string, unknown>) : {}
    const call = { name, headers: request.headers, json, future: futures.get(String(json['request_id']))?.name }
    calls.push(call)
    const instead = interceptor?.(call) ?? null
    if (instead === 'hang') return
    if (instead === 'drop') return void request.socket.destroy()
    if (instead)
      return void response.writeHead(instead.status, { 'content-type': instead.type ?? 'application/json' }).end(instead.body ?? '{}')
    try {
      if (apiKey !== undefined && request.headers['x-api-key'] !== apiKey) throw new Refusal(401, 'Invalid API key')
      const route = routes[name]
      if (!route) throw new Refusal(404, 'Not Found')
      if (name === 'forward_backward' && !isProtobuf) throw new Refusal(415, 'forward_backward requires a application/x-protobuf body')
      const value = await route(json, body)
      if (Buffer.isBuffer(value)) response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end(value)
      else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value))
    } catch (error) {
      const status = error instanceof Refusal ? error.status : 500
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ detail: errorMessage(error) }))
    }
  }

  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    models: () => models.size,
    sent: () => ({ rows: sentRows, tokens: sentTokens }),
    intercept(next) {
      interceptor = next
    },
    async close() {
      server.closeAllConnections()
      if (server.listening) await new Promise((resolve) => server.close(resolve))
      const open = [...models.values()]
      models.clear()
      for (const { policy, last } of open) {
        await last
        await policy.close()
      }
    },
  }
}
