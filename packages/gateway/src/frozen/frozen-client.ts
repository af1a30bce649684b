import { setTimeout as sleep } from 'node:timers/promises'
import { createSlots, orAborted } from '@aworld-train/core'
import { type Cassette, createRedact, openCassette, type Redact } from '@aworld-train/http'
import { TrainError } from '@aworld-train/protocol'
import { Pool } from 'undici'
import type { FrozenModel } from '../models/model-table.ts'
import { errorText } from '../pass-through/engine-failure.ts'
import { frozenApis } from './apis.ts'

/** Receives an answer with a status below 300; others are errors. */
export interface FrozenHandler {
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
   * FROZEN_MODEL_FAILED or the signal's reason.
   */
  send(body: Buffer, handler: FrozenHandler, signal: AbortSignal): Promise<void>
  close(): Promise<void>
}

/** An error answer, as text without the key. */
interface Refusal {
  readonly status: number
  readonly text: string
  readonly retryAfterMs: number | null
}

/** Statuses that refuse a call because of load, before anything was generated. */
const busy: ReadonlySet<number> = new Set([429, 502, 503, 504, 529])
const maxErrorBytes = 64 * 1024
const longestWaitMs = 60_000

/** Codes of connections that could not be opened, so that nothing was sent. */
const unsent: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

class Unreachable extends Error {}

function keyOf({ name, apiKey }: FrozenModel): string | undefined {
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

/** The status for the client. The client's mistakes and refusals because of load pass through; everything else is a bad gateway. */
const shownStatus = (status: number) => (status === 400 || status === 413 || status === 422 || status === 429 ? status : 502)

/** Rejects with CONFIG_INVALID if the key is missing, and as `openCassette` does. */
async function openFrozenClient(
  model: FrozenModel,
  cassettes: (path: string, mode: 'record' | 'replay') => Promise<Cassette>,
): Promise<FrozenClient> {
  const {
    name,
    dialect,
    baseUrl,
    headers: modelHeaders = {},
    retries = 2,
    timeoutMs = 600_000,
    maxInFlight = Number.POSITIVE_INFINITY,
  } = model
  const cassette = model.cassette ? await cassettes(model.cassette.path, model.cassette.mode) : null
  // Replaying needs no key, because nothing is sent.
  const key = cassette?.mode === 'replay' ? undefined : keyOf(model)
  const redact = createRedact([key, ...secretsOf(modelHeaders)])
  const url = new URL(baseUrl)
  const { path, headers } = frozenApis[dialect]
  const target = `${url.pathname.replace(/\/$/, '')}${path}${url.search}`
  const allHeaders = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers(key), ...modelHeaders }
  const pool = new Pool(url.origin, { headersTimeout: timeoutMs, bodyTimeout: timeoutMs, connections: 1024, pipelining: 1 })
  const slots = createSlots(maxInFlight)

  const failed = (message: string, details?: Record<string, unknown>, cause?: unknown) =>
    new TrainError('FROZEN_MODEL_FAILED', redact(`Model "${name}" ${message}`), { cause, ...(details && { details }) })

  /** Sends once. Rejects with the signal's reason, with Unreachable where nothing was sent, and with FROZEN_MODEL_FAILED. */
  async function attempt(body: Buffer, handler: FrozenHandler, signal: AbortSignal): Promise<Refusal | null> {
    let answered = false
    try {
      const answer = await pool.request({ method: 'POST', path: target, headers: allHeaders, body, signal })
      answered = true
      const { statusCode: status, headers: answerHeaders } = answer
      const header = (field: string) => [answerHeaders[field]].flat()[0]
      if (status >= 300) {
        const seconds = Number(header('retry-after') ?? Number.NaN)
        const text = redact(await beginningOf(answer.body))
        return { status, text, retryAfterMs: Number.isFinite(seconds) ? seconds * 1000 : null }
      }
      handler.onHead(header('content-type') ?? '')
      for await (const chunk of answer.body) {
        const { promise, resolve } = Promise.withResolvers<void>()
        if (!handler.onData(chunk as Buffer, resolve)) await orAborted(promise, signal)
      }
      return null
    } catch (cause) {
      if (signal.aborted) throw signal.reason
      const { code = '', message } = cause as NodeJS.ErrnoException
      if (!answered && unsent.has(code)) throw new Unreachable(message, { cause })
      const when = answered ? 'broke off its answer' : 'did not answer'
      throw failed(`${when}: ${message || code}. Check its base URL, or raise timeoutMs.`, undefined, cause)
    }
  }

  async function sendWithRetries(body: Buffer, handler: FrozenHandler, signal: AbortSignal): Promise<void> {
    for (let tried = 0; ; tried++) {
      let waitMs = Math.min(500 * 2 ** tried, longestWaitMs)
      try {
        const refusal = await attempt(body, handler, signal)
        if (!refusal) return
        const { status, text, retryAfterMs } = refusal
        if (!busy.has(status) || tried >= retries) {
          const key = status === 401 || status === 403 ? ' Check its key.' : ''
          throw failed(`answered ${status}: ${errorText(text)}${key}`, { status: shownStatus(status), upstreamStatus: status })
        }
        waitMs = Math.min(retryAfterMs ?? waitMs, longestWaitMs)
      } catch (cause) {
        if (!(cause instanceof Unreachable)) throw cause
        if (tried >= Math.max(retries, 1)) throw failed(`cannot be reached: ${cause.message}. Check its base URL.`, undefined, cause.cause)
      }
      await sleep(waitMs, undefined, { signal }).catch(() => {
        throw signal.reason
      })
    }
  }

  return {
    redact,
    cassette,
    async send(body, handler, signal) {
      await slots.take(signal)
      try {
        await sendWithRetries(body, handler, signal)
      } finally {
        slots.give()
      }
    },
    close: () => pool.destroy(),
  }
}

/** The third parties of a gateway, by the names of their models. Models may share the files of their answers. */
export interface FrozenClients {
  get(model: string): FrozenClient
  close(): Promise<void>
}

export async function openFrozenClients(models: readonly FrozenModel[]): Promise<FrozenClients> {
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
    for (const model of models) clients.set(model.name, await openFrozenClient(model, cassettes))
  } catch (error) {
    await close()
    throw error
  }
  return { get: (model) => clients.get(model)!, close }
}
