import {
  createEventReader,
  type Episode,
  type ErrorCode,
  type ErrorRecord,
  errorCatalogue,
  type RolloutRequest,
  type RolloutRunner,
  type RolloutState,
  RunEvent,
  runAll,
  TrainError,
} from '@aworld-train/core'
import { retryRules, sendWithRetries } from '@aworld-train/http'
import { type Dispatcher, Pool } from 'undici'
import { fromWire } from './wire.ts'

export interface RolloutClientOptions {
  /** Address of the service, without a path. */
  readonly url: string
  readonly token?: string | undefined
  /** Most sockets at once. Each rollout that is waited for holds one. Default 4,096. */
  readonly connections?: number | undefined
  /** How often a request is repeated while no server answers or the server is full. The delay doubles each time. Default 6. */
  readonly retries?: number | undefined
  /** Certificate authority in PEM, for a service with a certificate of its own. */
  readonly ca?: string | Buffer | undefined
}

/** The rollout service of another process. It is also a RolloutRunner, whose rollouts run there. */
export interface RolloutClient extends RolloutRunner {
  submit(request: RolloutRequest, signal?: AbortSignal): Promise<RolloutState>
  /** State of a rollout, at once or when it has ended within `waitMs`. Rejects with ROLLOUT_UNKNOWN. */
  get(key: string, options?: { waitMs?: number | undefined; signal?: AbortSignal | undefined }): Promise<RolloutState>
  cancel(key: string): Promise<RolloutState>
  /** Yields events of one rollout until it has ended, or of all until the signal aborts. */
  events(options: { rollout?: string | undefined; after?: string | undefined; signal: AbortSignal }): AsyncGenerator<RunEvent, void, void>
  close(): Promise<void>
}

/** Length of one long poll, shorter than the silence that proxies allow a connection. */
const pollMs = 50_000
/** Longest silence of the service in an answer that does not wait for a rollout. Streams of events are never silent this long. */
const silenceMs = 60_000

function toError(status: number, text: string): TrainError {
  let record: ErrorRecord | undefined
  try {
    record = (JSON.parse(text) as { error?: ErrorRecord }).error
  } catch {
    // The error below says that this is not an answer of the service.
  }
  if (record && record.code in errorCatalogue) return new TrainError(record.code as ErrorCode, record.message, { details: { status } })
  return new TrainError(
    'GATEWAY_FAILED',
    `The rollout service answered ${status} with ${JSON.stringify(text.slice(0, 200))}; check its URL.`,
    {
      details: { status },
    },
  )
}

export function createRolloutClient({ url, token, connections = 4_096, retries, ca }: RolloutClientOptions): RolloutClient {
  const origin = new URL(url).origin
  const pool = new Pool(origin, { connections, ...(ca !== undefined && { connect: { ca } }) })
  const headers = { ...(token !== undefined && { authorization: `Bearer ${token}` }) }

  interface RequestParts {
    readonly body?: string | undefined
    readonly waitMs?: number | undefined
    readonly signal?: AbortSignal | undefined
  }

  async function once(method: Dispatcher.HttpMethod, path: string, { body, waitMs = 0, signal }: RequestParts = {}) {
    const answer = await pool.request({
      method,
      path,
      headersTimeout: waitMs + silenceMs,
      bodyTimeout: silenceMs,
      headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
      ...(body !== undefined && { body }),
      ...(signal && { signal }),
    })
    return { status: answer.statusCode, text: await answer.body.text() }
  }

  async function send(method: Dispatcher.HttpMethod, path: string, parts: RequestParts = {}): Promise<RolloutState> {
    const { signal } = parts
    const { status, text } = await sendWithRetries(retryRules.rolloutService, () => once(method, path, parts), { retries, signal })
    if (status >= 300) throw toError(status, text)
    return fromWire(JSON.parse(text))
  }

  const pathOf = (key: string) => `/v1/rollouts/${encodeURIComponent(key)}`

  async function run(request: RolloutRequest, signal: AbortSignal): Promise<Episode> {
    const { key } = request
    const body = JSON.stringify(request)
    try {
      await send('POST', '/v1/rollouts', { body, signal })
      for (;;) {
        const state = await send('GET', `${pathOf(key)}?wait=${pollMs}ms&include=episode`, { waitMs: pollMs, signal })
        if (state.episode) return state.episode
        // The service restarted while the rollout ran; the same request begins a new attempt.
        if (state.status === 'interrupted') await send('POST', '/v1/rollouts', { body, signal })
        else if (state.error) throw new TrainError(state.error.code as ErrorCode, state.error.message)
      }
    } catch (cause) {
      if (!signal.aborted) throw cause
      await once('DELETE', pathOf(key)).catch(() => {})
      throw new TrainError('ROLLOUT_CANCELLED', `Rollout "${key}" was cancelled; submit it again to run it.`, { cause: signal.reason })
    }
  }

  return {
    submit: (request, signal) => send('POST', '/v1/rollouts', { body: JSON.stringify(request), signal }),
    get: (key, { waitMs = 0, signal } = {}) => send('GET', `${pathOf(key)}${waitMs > 0 ? `?wait=${waitMs}ms` : ''}`, { waitMs, signal }),
    cancel: (key) => send('DELETE', pathOf(key)),
    async *events({ rollout, after, signal }) {
      const path = rollout === undefined ? '/v1/events' : `${pathOf(rollout)}/events`
      const answer = await pool.request({
        method: 'GET',
        path,
        bodyTimeout: silenceMs,
        headers: { ...headers, ...(after !== undefined && { 'last-event-id': after }) },
        signal,
      })
      if (answer.statusCode !== 200) throw toError(answer.statusCode, await answer.body.text())
      try {
        const reader = createEventReader()
        for await (const chunk of answer.body) {
          for (const { name, data } of reader.push(chunk)) {
            const parsed = name === 'rollout-state' || name === 'events-lost' ? null : RunEvent.safeParse(JSON.parse(data))
            if (parsed?.success) yield parsed.data
          }
        }
      } catch (cause) {
        if (!signal.aborted) throw cause
      }
    },
    run,
    runAll: (requests, signal) => runAll(run, requests, signal),
    close: () => pool.destroy(),
  }
}
