import { orAborted, TrainError } from '@aworld-train/core'
import {
  type Cassette,
  createRedact,
  type GateCall,
  isRefusedForLoad,
  isUnsent,
  LoadGate,
  openCassette,
  type Redact,
  retryRules,
  sendWithRetries,
} from '@aworld-train/http'
import { Pool } from 'undici'
import type { FrozenModel } from '../models/model-table.ts'
import type { GatewayWarning } from '../options.ts'
import { errorText, overflowOf } from '../pass-through/engine-failure.ts'
import { frozenApis } from './apis.ts'

/** Receives an answer with a status below 300; others are errors. */
export interface FrozenHandler {
  /** The request is sent, for the first time or again. */
  onSend(): void
  onHead(contentType: string): void
  /** Returning `false` makes the third party wait until `resume` is called. */
  onData(chunk: Buffer, resume: () => void): boolean
}

/** A third party: its connections, its key, and the recording of its answers. */
export interface FrozenClient {
  readonly redact: Redact
  readonly cassette: Cassette | null
  /**
   * Sends a request, with the retries that the model allows; once bytes have arrived nothing is repeated. Rejects with
   * FROZEN_MODEL_FAILED or the signal's reason. Calls wait together while the third party refuses some for load.
   */
  send(body: Buffer, handler: FrozenHandler, call: GateCall): Promise<void>
  close(): Promise<void>
}

/** How an answer ended: whole, or as an error, whose text has no key in it. */
interface Outcome {
  readonly status: number
  readonly retryAfter: string | null
  readonly refusal: string | null
  /** Where a redirection leads. */
  readonly location: string | null
}

const maxErrorBytes = 64 * 1024

function keyOf({ name, apiKey }: FrozenModel): string | undefined {
  if (apiKey === '')
    throw new TrainError('CONFIG_INVALID', `The key of model "${name}" is empty; give it one, or none where no key is needed.`)
  if (apiKey === undefined || typeof apiKey === 'string') return apiKey
  const key = process.env[apiKey.env]
  if (key) return key
  throw new TrainError(
    'CONFIG_INVALID',
    `The key of model "${name}" is to be had from ${apiKey.env}, which is not set; set it, or name no variable where no key is needed.`,
  )
}

/** Values of headers that carry a key under a name of the third party's own, with and without the name of a scheme. */
function secretsOf(headers: Readonly<Record<string, string>>): string[] {
  const named = Object.entries(headers).filter(([name]) => /key|token|secret|auth/i.test(name))
  // A shorter value is a mode such as `true`, which may also occur in answers.
  return named.flatMap(([, value]) => [value, value.slice(value.indexOf(' ') + 1)]).filter(({ length }) => length >= 8)
}

/** The text of an error, of which a long one is cut. */
async function beginningOf(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes >= maxErrorBytes) break
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Refusals in a row, and the pause, from which on people are told. */
const manyRefusals = 4
const longPauseMs = 30_000

/** Whether there is no credit left, for which no wait helps. OpenAI answers so, with 429 (platform.openai.com/docs/guides/error-codes). */
const isOutOfCredit = ({ refusal }: Outcome) => refusal !== null && /"insufficient_quota"/.test(refusal)

/** What to do about an answer that is none, as a sentence after it. */
function remedyOf(outcome: Outcome, hasKey: boolean): string {
  const { status, refusal, location } = outcome
  const isJson = /^\s*\{/.test(refusal ?? '')
  if (status < 400)
    return location === null ? '' : ` It leads to ${location}; set its base URL to where that is, because the key is sent nowhere else.`
  if (status === 401 || status === 403) return hasKey ? ' Check its key.' : ' It wants a key; give it one.'
  if (status === 404)
    return isJson ? " Check the model's name." : ' Check its base URL: it is the part before /chat/completions, /responses or /messages.'
  return isOutOfCredit(outcome) ? ' Add credit to its account.' : ''
}

/** The status for the client. The client's mistakes and refusals because of load pass through; everything else is a bad gateway. */
const shownStatus = (status: number) => (status === 400 || status === 413 || status === 422 || status === 429 ? status : 502)

/** Rejects with CONFIG_INVALID if the key is missing, and as `openCassette` does. */
async function openFrozenClient(
  model: FrozenModel,
  cassettes: (path: string, mode: 'record' | 'replay') => Promise<Cassette>,
  warn: (warning: GatewayWarning) => void,
): Promise<FrozenClient> {
  const { name, dialect, baseUrl, headers: modelHeaders = {}, timeoutMs = 600_000, maxInFlight = Number.POSITIVE_INFINITY } = model
  const { retries = retryRules.thirdParty.retries, patienceMs } = model
  const cassette = model.cassette ? await cassettes(model.cassette.path, model.cassette.mode) : null
  // Replaying needs no key, because nothing is sent.
  const key = cassette?.mode === 'replay' ? undefined : keyOf(model)
  const redact = createRedact([key, ...secretsOf(modelHeaders)])
  if (!/^https?:$/.test(URL.parse(baseUrl)?.protocol ?? ''))
    throw new TrainError(
      'CONFIG_INVALID',
      `The base URL of model "${name}" is ${JSON.stringify(baseUrl)}; it must be one of http:// or https://.`,
    )
  const url = new URL(baseUrl)
  const { path, headers } = frozenApis[dialect]
  const target = `${url.pathname.replace(/\/$/, '')}${path}${url.search}`
  const allHeaders = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers(key), ...modelHeaders }
  const pool = new Pool(url.origin, { headersTimeout: timeoutMs, bodyTimeout: timeoutMs, connections: 1024, pipelining: 1 })
  let hasWarned = false
  const gate = new LoadGate<Outcome>({
    maxInFlight,
    retries,
    patienceMs,
    firstMs: retryRules.thirdParty.firstMs,
    longestMs: retryRules.thirdParty.longestMs,
    isRefusal: (outcome) => isRefusedForLoad(outcome) && !isOutOfCredit(outcome),
    onClose({ status, refusal }, inARow, pauseMs) {
      if (hasWarned || (inARow < manyRefusals && pauseMs < longPauseMs)) return
      hasWarned = true
      const message = `Model "${name}" refuses calls for load (${status}: ${errorText(refusal ?? '')}). Its calls wait together, now for ${Math.round(pauseMs / 1000)} s, and the clocks of their rollouts stand; lower the concurrency, or raise the limit of its account.`
      warn({ code: 'MODEL_BUSY', message, details: { model: name, status, pauseMs } })
    },
  })

  const failed = (message: string, details?: Record<string, unknown>, cause?: unknown) =>
    new TrainError('FROZEN_MODEL_FAILED', redact(`Model "${name}" ${message}`), { cause, ...(details && { details }) })

  /** Sends once. Rejects with the signal's reason, with the error of a connection that could not be made, and with FROZEN_MODEL_FAILED. */
  async function attempt(body: Buffer, handler: FrozenHandler, signal: AbortSignal): Promise<Outcome> {
    let answered = false
    try {
      handler.onSend()
      const answer = await pool.request({ method: 'POST', path: target, headers: allHeaders, body, signal })
      answered = true
      const { statusCode: status, headers: answerHeaders } = answer
      const header = (field: string) => [answerHeaders[field]].flat()[0]
      if (status >= 300) {
        const refusal = redact(await beginningOf(answer.body))
        return { status, retryAfter: header('retry-after') ?? null, refusal, location: header('location') ?? null }
      }
      if (/html/i.test(header('content-type') ?? '')) {
        const page = (await beginningOf(answer.body)).replace(/\s+/g, ' ').slice(0, 200)
        throw failed(`answered a web page: ${page} … Check its base URL: an API mostly ends with /v1.`)
      }
      handler.onHead(header('content-type') ?? '')
      for await (const chunk of answer.body) {
        const { promise, resolve } = Promise.withResolvers<void>()
        if (!handler.onData(chunk as Buffer, resolve)) await orAborted(promise, signal)
      }
      return { status, retryAfter: null, refusal: null, location: null }
    } catch (cause) {
      if (signal.aborted) throw signal.reason
      if (cause instanceof TrainError || (!answered && isUnsent(cause))) throw cause
      const { code = '', message } = cause as NodeJS.ErrnoException
      const when = answered ? 'broke off its answer' : 'did not answer'
      throw failed(`${when}: ${message || code}. Check its base URL, or raise timeoutMs.`, undefined, cause)
    }
  }

  async function send(body: Buffer, handler: FrozenHandler, call: GateCall): Promise<void> {
    const { signal } = call
    const sendOnce = () => sendWithRetries(retryRules.thirdParty, () => attempt(body, handler, signal), { retries, signal })
    const outcome = await gate.run(sendOnce, call).catch((cause: Error) => {
      throw isUnsent(cause) ? failed(`cannot be reached: ${cause.message}. Check its base URL.`, undefined, cause) : cause
    })
    const { status, refusal } = outcome
    if (refusal === null) return
    const tooLong = model.evaluated ? overflowOf(`model "${name}"`, { status, text: refusal }) : null
    if (tooLong) throw tooLong
    throw failed(`answered ${status}: ${errorText(refusal).replace(/\.?$/, '.')}${remedyOf(outcome, key !== undefined)}`, {
      status: shownStatus(status),
      upstreamStatus: status,
    })
  }

  return {
    redact,
    cassette,
    send,
    close() {
      gate.close()
      return pool.destroy()
    },
  }
}

/** The third parties of a gateway, by the names of their models. Models may share the files of their answers. */
export interface FrozenClients {
  get(model: string): FrozenClient
  close(): Promise<void>
}

export async function openFrozenClients(models: readonly FrozenModel[], warn: (warning: GatewayWarning) => void): Promise<FrozenClients> {
  const files = new Map<string, { readonly mode: 'record' | 'replay'; readonly cassette: Promise<Cassette> }>()
  const clients = new Map<string, FrozenClient>()
  const cassettes = (path: string, mode: 'record' | 'replay'): Promise<Cassette> => {
    const existing = files.get(path)
    if (!existing) {
      const cassette = openCassette({ path, mode, repeats: 'in-order' })
      files.set(path, { mode, cassette })
      return cassette
    }
    if (existing.mode === mode) return existing.cassette
    throw new TrainError('CONFIG_INVALID', `The file ${path} is to be recorded and replayed at once; give each its own.`)
  }
  async function close(): Promise<void> {
    await Promise.all(Array.from(clients.values(), (client) => client.close()))
    await Promise.allSettled(Array.from(files.values(), async ({ cassette }) => (await cassette).close()))
  }
  try {
    for (const model of models) clients.set(model.name, await openFrozenClient(model, cassettes, warn))
  } catch (error) {
    await close()
    throw error
  }
  return { get: (model) => clients.get(model)!, close }
}
