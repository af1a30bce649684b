import { once } from 'node:events'
import {
  type ChannelArrays,
  type ChannelDatasetRow,
  type ChannelGenerate,
  type ChannelHello,
  type ChannelPartition,
  type ChannelResult,
  type ChannelSubmit,
  type ChannelWelcome,
  channelKey,
  channelPath,
  channelProtocol,
  decodeChannelFrame,
  encodeChannelFrame,
  ServiceMessage,
  TrainError,
} from '@aworld-train/core'
import { WebSocket } from 'ws'

/** Answer of a trainer client's engine to one call: tokens, or `fail` in place of them, or `never` for no answer at all. */
export type Sampled =
  | {
      readonly ids: readonly number[] | Int32Array
      /** -0.5 each by default. */
      readonly logprobs?: readonly number[] | Float32Array
      readonly finish?: 'stop' | 'length' | 'aborted'
      readonly minVersion?: number
      readonly maxVersion?: number
    }
  | { readonly fail: { readonly code: string; readonly message: string; readonly retryable: boolean } }
  | 'never'

export interface TrainerClientCall extends ChannelGenerate {
  readonly promptIds: Int32Array
}

export interface TrainerClientOptions {
  /** Address of the rollout server. */
  readonly url: string
  readonly token?: string | undefined
  /** The engine: called for every `generate`. */
  readonly sample: (call: TrainerClientCall, signal: AbortSignal) => Sampled | Promise<Sampled>
  /** Parts of the hello that are not those of a tiny model. */
  readonly hello?: Partial<Omit<ChannelHello, 'type'>> | undefined
  /** The rendered ids of the hello. */
  readonly renderedIds: Int32Array
  /** Tokenizer files, sent where the service needs them. */
  readonly files?: ReadonlyMap<string, Uint8Array> | undefined
}

export interface TrainerClientSubmission {
  readonly uid?: string
  readonly sample?: number
  readonly step?: number
  readonly partition?: ChannelPartition
  readonly row?: Partial<ChannelDatasetRow>
  readonly temperature?: number
  readonly topP?: number
  readonly deadlineMs?: number | null
}

/** A result with its rows' arrays. */
export interface TrainerClientResult extends ChannelResult {
  readonly tokens: readonly { readonly ids: Int32Array; readonly mask: Uint8Array; readonly logprobs: Float32Array }[]
}

/** A trainer client over a real WebSocket, with a sampler in place of a trainer's engine. It reconnects only where it is told to. */
export interface TrainerClient {
  readonly hello: ChannelHello
  readonly welcome: ChannelWelcome
  /** The key of a submission. */
  keyOf(submission: TrainerClientSubmission): string
  /** Resolves with the result; rejects with the code and message of a connection that ends before. */
  submit(submission: TrainerClientSubmission): Promise<TrainerClientResult>
  cancel(key: string, reason?: string): void
  send(message: object, arrays?: ChannelArrays): void
  /** Sends bytes as they are. */
  sendRaw(data: string | Uint8Array): void
  /** Messages of the service, in order. */
  readonly heard: readonly ServiceMessage[]
  /** Tokens that it sampled and sent. */
  sampledTokens(): number
  /** Ids of calls that the service gave up. */
  readonly aborted: readonly number[]
  /** Why the service ended the connection. */
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>
  /** Stops reading, so that no ping is answered. */
  pauseReading(): void
  /** Cuts the connection without a closing handshake. */
  terminate(): void
  close(): Promise<void>
}

/** Opens a connection and greets; rejects with the service's error where it is not welcome, or with the HTTP status. */
export async function connectTrainerClient(options: TrainerClientOptions): Promise<TrainerClient> {
  const { url, token, sample, renderedIds, files } = options
  const hello: ChannelHello = {
    type: 'hello',
    protocol: channelProtocol,
    run: 'run',
    incarnation: 'first',
    worker: 'worker-0',
    framework: { name: 'test', version: '0' },
    model: { name: 'tiny', vocabularySize: 259, stopTokenIds: [257] },
    tokenizerHash: 'none',
    templateHash: 'none',
    limits: { maxPromptTokens: 512, maxResponseTokens: 512, contextLength: null },
    check: { messages: [{ role: 'user', content: 'Hello.' }], tools: null, templateArguments: {} },
    ...options.hello,
  }
  const socket = new WebSocket(url.replace(/^http/, 'ws') + channelPath, {
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    perMessageDeflate: false,
  })
  const heard: ServiceMessage[] = []
  const aborted: number[] = []
  const calls = new Map<number, AbortController>()
  const waiting = new Map<string, PromiseWithResolvers<TrainerClientResult>>()
  const greeted = Promise.withResolvers<ChannelWelcome>()
  const ended = Promise.withResolvers<{ readonly code: number; readonly reason: string }>()
  greeted.promise.catch(() => {})
  let welcome: ChannelWelcome | undefined
  let failure: Error | undefined
  let sampledTokens = 0

  const sendRaw = (data: string | Uint8Array) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(data)
  }
  const send = (message: object, arrays?: ChannelArrays) => sendRaw(encodeChannelFrame(message, arrays))

  async function answer(call: TrainerClientCall): Promise<void> {
    const controller = new AbortController()
    calls.set(call.id, controller)
    const { id } = call
    try {
      const reply = await sample(call, controller.signal)
      if (reply === 'never') return
      if ('fail' in reply) send({ type: 'generate-failed', id, error: reply.fail })
      else {
        const { finish = 'stop', minVersion = 0, maxVersion = minVersion } = reply
        const ids = Int32Array.from(reply.ids)
        const logprobs = Float32Array.from(reply.logprobs ?? Array.from(ids, () => -0.5))
        sampledTokens += ids.length
        send({ type: 'generated', id, finish, minVersion, maxVersion }, { ids, logprobs })
      }
    } catch (error) {
      send({ type: 'generate-failed', id, error: { code: 'POLICY_FAILED', message: String(error), retryable: false } })
    } finally {
      calls.delete(id)
    }
  }

  function take(message: ServiceMessage, arrays: ChannelArrays): void {
    heard.push(message)
    if (message.type === 'welcome') {
      welcome = message
      const entries = [...(files ?? [])]
      if (message.needFiles) send({ type: 'files', files: entries.map(([name]) => ({ name })) }, Object.fromEntries(entries))
    } else if (message.type === 'ready') greeted.resolve(welcome!)
    else if (message.type === 'rejected') {
      failure = Object.assign(new Error(message.error.message), { code: message.error.code })
      greeted.reject(failure)
    } else if (message.type === 'generate') void answer({ ...message, promptIds: arrays['promptIds'] as Int32Array })
    else if (message.type === 'abort') {
      aborted.push(message.id)
      calls.get(message.id)?.abort(new Error('aborted'))
    } else if (message.type === 'result') {
      const tokens = message.rows.map((_, index) => ({
        ids: arrays[`ids.${index}`] as Int32Array,
        mask: arrays[`mask.${index}`] as Uint8Array,
        logprobs: arrays[`logprobs.${index}`] as Float32Array,
      }))
      waiting.get(message.key)?.resolve({ ...message, tokens })
      waiting.delete(message.key)
    }
  }

  socket.on('message', (data: Buffer, isBinary: boolean) => {
    const frame = decodeChannelFrame(isBinary ? data : data.toString())
    take(ServiceMessage.parse(frame.message), frame.arrays)
  })
  socket.on('error', (error) => {
    failure ??= error
    greeted.reject(error)
  })
  socket.on('close', (code, reason) => {
    const error = failure ?? new TrainError('CHANNEL_LOST', `The connection ended with ${code} ${reason}; connect again.`)
    greeted.reject(error)
    for (const [key, { reject }] of waiting) {
      waiting.delete(key)
      reject(error)
    }
    for (const controller of calls.values()) controller.abort(error)
    ended.resolve({ code, reason: reason.toString() })
  })
  socket.on('unexpected-response', (_, response) => {
    failure = Object.assign(new Error(`The service answered ${response.statusCode}.`), { status: response.statusCode })
    greeted.reject(failure)
    socket.terminate()
  })

  await once(socket, 'open').catch(() => {
    throw failure
  })
  send(hello, { renderedIds })
  const received = await greeted.promise

  function keyOf({ uid = 'group-0', sample: index = 0, step = 1, partition = 'train' }: TrainerClientSubmission): string {
    const { run, incarnation } = hello
    return channelKey({ run, incarnation, partition, step, uid, sample: index })
  }

  return {
    hello,
    welcome: received,
    keyOf,
    submit(submission) {
      const {
        uid = 'group-0',
        sample: index = 0,
        step = 1,
        partition = 'train',
        row,
        temperature = 1,
        topP = 1,
        deadlineMs = null,
      } = submission
      const message: ChannelSubmit = {
        type: 'submit',
        key: keyOf(submission),
        partition,
        step,
        uid,
        sample: index,
        row: { prompt: [{ role: 'user', content: `Task ${uid}.` }], ...row },
        sampling: { temperature, topP, topK: -1, repetitionPenalty: 1 },
        deadlineMs,
      }
      const result = waiting.get(message.key) ?? Promise.withResolvers<TrainerClientResult>()
      waiting.set(message.key, result)
      // A test that does not wait for the result must not get its rejection as an unhandled one.
      result.promise.catch(() => {})
      send(message)
      return result.promise
    },
    cancel: (key, reason = 'not needed') => send({ type: 'cancel', key, reason }),
    send,
    sendRaw,
    heard,
    sampledTokens: () => sampledTokens,
    aborted,
    closed: ended.promise,
    pauseReading: () => socket.pause(),
    terminate: () => socket.terminate(),
    async close() {
      socket.close()
      await ended.promise
    },
  }
}
