import { setTimeout as sleep } from 'node:timers/promises'
import { errorMessage, isRecord, TrainError } from '@aworld-train/core'
import { retryRules, sendWithRetries } from '@aworld-train/http'
import { Agent } from 'undici'
import { messageOf, refusal, toAnswerError } from './answer-errors.ts'

export interface TinkerService {
  /** Address of the service, such as `http://127.0.0.1:8000`. */
  readonly url: string
  /** Sent as `X-API-Key`. Servers of one's own accept any. */
  readonly apiKey?: string | undefined
  /** How long, in milliseconds, a call is repeated while the server cannot be reached, is overloaded or fails. Default 60,000. */
  readonly patienceMs?: number | undefined
  /** Milliseconds that the result of a request may take, including compilation and the queue of the service. Default 900,000. */
  readonly resultMs?: number | undefined
}

export interface ResultRequest {
  readonly id: string
  /** Name of the request, for messages. */
  readonly what: string
  readonly signal?: AbortSignal | undefined
}

/** Calls of the Tinker protocol. A path is whole, such as `/api/v1/asample`. A request is submitted, and its result is polled. */
export interface TinkerClient {
  readonly url: string
  /** Makes a call that is answered at once. */
  call<T extends object>(path: string, body?: object, signal?: AbortSignal): Promise<T>
  /** Submits a request; a Buffer is protocol buffers. Resolves to the answer, which includes `request_id`. */
  submit(path: string, body: object | Buffer, signal?: AbortSignal): Promise<{ readonly request_id: string }>
  /** The result as JSON, or as protocol buffers. */
  result(request: ResultRequest): Promise<Buffer | Readonly<Record<string, unknown>>>
  /** Makes calls under way and later ones reject with POLICY_UNAVAILABLE. */
  close(): Promise<void>
}

interface Exchange {
  readonly what: string
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly body?: object | Buffer | undefined
  readonly accept?: string | undefined
  /** Whether a missing answer means that there is no result yet. */
  readonly isPoll?: boolean | undefined
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
}

interface Answer {
  readonly status: number
  readonly type: string
  readonly body: Buffer
}

const protobufType = 'application/x-protobuf'
const callMs = 60_000
/** Duration of one poll for a result. A server may hold it longer, and then answers the next. */
const pollMs = 45_000
/** Pause between two polls, so that a server that answers 408 at once is not polled in a tight loop. */
const pauseMs = 50

export function createTinkerClient({ url: address, apiKey, patienceMs = 60_000, resultMs = 900_000 }: TinkerService): TinkerClient {
  const url = baseUrl(address)
  // A header refuses other characters, and the refusal's message would contain the key.
  if (apiKey !== undefined && !/^[\x21-\x7e]+$/.test(apiKey))
    throw new TrainError(
      'CONFIG_INVALID',
      'TINKER_API_KEY is empty, or has a blank, a line break or a letter beyond ASCII; set it to the key alone.',
    )
  // Servers close idle connections after 5 s or more. A request that meets the closing would fail.
  const agent = new Agent({
    keepAliveTimeout: 4_000,
    keepAliveMaxTimeout: 4_000,
    headersTimeout: 0,
    bodyTimeout: 0,
    connectTimeout: 10_000,
  })
  const closing = new AbortController()

  async function exchange({ method, path, body, accept, timeoutMs, signal }: Exchange): Promise<Answer> {
    const signals = [closing.signal, AbortSignal.timeout(Math.ceil(timeoutMs)), ...(signal ? [signal] : [])]
    const { origin, pathname } = new URL(url + path)
    const answer = await agent.request({
      origin,
      path: pathname,
      method,
      headers: {
        ...(body !== undefined && { 'content-type': Buffer.isBuffer(body) ? protobufType : 'application/json' }),
        ...(accept !== undefined && { accept }),
        ...(apiKey !== undefined && { 'x-api-key': apiKey }),
      },
      body: body === undefined ? null : Buffer.isBuffer(body) ? body : JSON.stringify(body),
      signal: AbortSignal.any(signals),
    })
    const type = String(answer.headers['content-type'] ?? '')
    return { status: answer.statusCode, type, body: Buffer.from(await answer.body.arrayBuffer()) }
  }

  /** Repeats a call until it has a result. A repeated request of a model has the same `seq_id`, by which the service recognises it. */
  async function patiently(call: Exchange): Promise<Answer> {
    const signal = AbortSignal.any([closing.signal, ...(call.signal ? [call.signal] : [])])
    const send = () =>
      exchange(call).catch((error: unknown) => {
        if (call.isPoll && isTimeout(error)) return stillPending
        throw error
      })
    const rule = retryRules.trainingService
    const answer = await sendWithRetries(rule, send, { signal, patienceMs }).catch((error: unknown) => {
      signal.throwIfAborted()
      throw waitedFor(unreachable(call.what, error))
    })
    signal.throwIfAborted()
    if (rule.statuses(answer.status)) throw waitedFor(toAnswerError({ ...answer, url, what: call.what }))
    return answer
  }

  /** The error after all repetitions. Its `waitedMs` keeps callers from repeating the call, which would wait as long again. */
  function waitedFor({ code, message, cause, details }: TrainError): TrainError {
    return new TrainError(code, message, { cause, details: { ...details, waitedMs: patienceMs } })
  }

  function unreachable(what: string, cause: unknown): TrainError {
    const message = `${url} did not answer ${what} for ${patienceMs / 1_000} s: ${reasonOf(cause)}; check the address, the network and that the server runs.`
    return new TrainError('POLICY_UNAVAILABLE', message, { cause, details: { server: url, what } })
  }

  async function json<T extends object>(call: Omit<Exchange, 'timeoutMs'>): Promise<T> {
    const answer = await patiently({ ...call, timeoutMs: callMs })
    if (answer.status >= 300) throw toAnswerError({ ...answer, url, what: call.what })
    return parse(answer.body, call.what) as T
  }

  function parse(body: Buffer, what: string): Readonly<Record<string, unknown>> {
    let value: unknown
    try {
      value = JSON.parse(body.toString('utf8'))
    } catch {}
    if (isRecord(value)) return value
    const message = `${url} answered ${what} with what is no JSON object: "${body.toString('utf8', 0, 80)}"; check its version.`
    throw new TrainError('POLICY_RESPONSE_INVALID', message, { details: { server: url, what } })
  }

  async function result({ id, what, signal }: ResultRequest): Promise<Buffer | Readonly<Record<string, unknown>>> {
    const end = performance.now() + resultMs
    let queue = 'active'
    for (;;) {
      const left = end - performance.now()
      if (left <= 0) throw late(what, queue)
      const poll = { what, method: 'POST', path: '/api/v1/retrieve_future', accept: protobufType, signal } as const
      const body = { request_id: id }
      const answer = await patiently({ ...poll, body, isPoll: true, timeoutMs: Math.min(pollMs, left) })
      if (answer.status < 300 && answer.type.startsWith(protobufType)) return answer.body
      const isTaken = answer.status < 300 || answer.status === 408
      if (!isTaken && answer.status === 400) throw refusal({ url, what, message: messageOf(answer.body) })
      if (!isTaken) throw toAnswerError({ ...answer, url, what: `the result of ${what}` })
      const value = answer.status === 408 && answer.body.length === 0 ? {} : parse(answer.body, what)
      if (answer.status !== 408 && value['type'] !== 'try_again') {
        if (typeof value['error'] === 'string') throw refusal({ url, what, message: value['error'] })
        return value
      }
      if (typeof value['queue_state'] === 'string') queue = value['queue_state']
      await sleep(pauseMs, undefined, { signal: AbortSignal.any([closing.signal, ...(signal ? [signal] : [])]) }).catch(() => {})
      signal?.throwIfAborted()
    }
  }

  function late(what: string, queue: string): TrainError {
    const isFull = queue !== 'active'
    const message = isFull
      ? `${url} is at capacity (${queue}): ${what} had no result after ${resultMs / 1_000} s; try again later.`
      : `${url} had no result of ${what} after ${resultMs / 1_000} s; read its log, or raise tinker.resultMs.`
    return new TrainError(isFull ? 'POLICY_RATE_LIMITED' : 'POLICY_UNAVAILABLE', message, {
      details: { server: url, what, queue, waitedMs: resultMs },
    })
  }

  return {
    url,
    call: (path, body, signal) => json({ what: nameOf(path), method: body ? 'POST' : 'GET', path, body, signal }),
    async submit(path, body, signal) {
      const answer = await json<{ request_id?: unknown }>({ what: nameOf(path), method: 'POST', path, body, signal })
      const { request_id: id } = answer
      if (typeof id === 'string' || typeof id === 'number') return { ...answer, request_id: String(id) }
      throw new TrainError('POLICY_RESPONSE_INVALID', `${url} answered ${path} without a request_id; check its version.`)
    },
    result,
    async close() {
      closing.abort(new TrainError('POLICY_UNAVAILABLE', `The connection to ${url} is closed; open another.`))
      await agent.destroy()
    },
  }
}

/** The address without a trailing slash. Throws CONFIG_INVALID for an invalid address, without quoting it, because it may hold a secret. */
function baseUrl(address: string): string {
  const url = URL.parse(address)
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:'
  if (url && isHttp && !url.username && !url.password && !url.search && !url.hash) return url.href.replace(/\/+$/, '')
  const problem = isHttp ? 'has more than a host and a path' : 'is no address'
  const message = `The address of the Tinker service ${problem}; write one such as http://127.0.0.1:8000, in tinker.url or TINKER_BASE_URL.`
  throw new TrainError('CONFIG_INVALID', message)
}

const nameOf = (path: string) => path.slice(path.lastIndexOf('/') + 1) || path
const isTimeout = (outcome: unknown): boolean => outcome instanceof Error && outcome.name === 'TimeoutError'
const stillPending: Answer = { status: 408, type: '', body: Buffer.alloc(0) }

const reasonOf = (error: unknown) => (error instanceof AggregateError ? error.errors.map(errorMessage).join(', ') : errorMessage(error))
