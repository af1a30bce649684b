import {
  type Episode,
  type EpisodeReader,
  type ErrorRecord,
  isInfrastructureFailure,
  type RolloutRecord,
  type RolloutRequest,
  type RolloutRunner,
  type RolloutState,
  type RunEvent,
  type StopReason,
  type SubmissionStore,
  stableHash,
  stableStringify,
  TrainError,
  toTrainError,
  toTrainingSamples,
} from '@aworld-train/core'
import { cancelled } from '../rollout-errors.ts'
import { createEventFeed, type EventEntry, type EventQuery } from './event-feed.ts'

export interface RolloutServiceOptions {
  /** Opens the runner, which reports the start and end of rollouts through `onEvent` and is closed with the service. */
  readonly openRunner: (onEvent: (event: RunEvent) => void) => RolloutRunner & { close?(): Promise<void> }
  /** Keeps finished and accepted rollouts, also those of earlier processes. */
  readonly store: EpisodeReader & SubmissionStore
  /**
   * Throws for a new rollout that cannot run properly, such as one that would be scored without its answer. It throws ROLLOUT_INVALID
   * where the client can correct that.
   */
  readonly check?: ((request: RolloutRequest) => void) | undefined
  readonly limits?: Partial<RolloutServiceLimits> | undefined
}

export interface RolloutServiceLimits {
  /** Most bytes of all requests without a result. Their number is not bounded. */
  readonly maxQueuedBytes: number
  /** Most ended rollouts that are remembered outside the store. */
  readonly maxRemembered: number
  /** Number of events that a reader can go back to. */
  readonly maxKeptEvents: number
  /** A restarted service does not by itself run a rollout that has had this many attempts, because it may be what ends the process. */
  readonly maxAttemptsOfRestarts: number
}

const defaultServiceLimits: RolloutServiceLimits = {
  maxQueuedBytes: 1024 ** 3,
  maxRemembered: 10_000,
  maxKeptEvents: 10_000,
  maxAttemptsOfRestarts: 20,
}

export interface RolloutServiceCounts {
  readonly queued: number
  readonly running: number
  readonly queuedBytes: number
  /** Milliseconds that the first rollout of the queue has waited; 0 where the queue is empty. */
  readonly oldestQueuedMs: number
  readonly done: number
  readonly failed: number
  readonly cancelled: number
  /** Attempts that have ended since the start, by stop reason. */
  readonly ends: Readonly<Partial<Record<StopReason, number>>>
  /** Total milliseconds of those attempts. */
  readonly durationMs: number
  /** Whether the service takes no more rollouts. */
  readonly stopping: boolean
}

/** Takes rollouts, runs them and reports on them. In process and behind HTTP it is the same object. */
export interface RolloutService {
  /**
   * Queues a rollout. The same request again is the same rollout; if it is cancelled, failed, interrupted, or was ended by a failure of the
   * infrastructure, it runs again. The answer carries no episode. Throws ROLLOUT_CONFLICT for another request under the same key,
   * ROLLOUT_QUEUE_FULL beyond the bytes of the queue, ROLLOUT_CANCELLED once the service stops, and whatever `check` throws.
   */
  submit(request: RolloutRequest): RolloutState
  /**
   * Like `submit`, but resolves once the rollout is queued on disk. If the process ends before the rollout does, the next service over the
   * same store runs it again by itself, unless `check` refuses it by then or it has had `maxAttemptsOfRestarts`.
   */
  accept(request: RolloutRequest): Promise<RolloutState>
  /** Throws ROLLOUT_UNKNOWN. */
  get(key: string): RolloutState
  /**
   * Resolves to the state of the rollout when it has ended, after `timeoutMs`, or when the signal aborts. With `samples: false` no samples
   * are built. Throws ROLLOUT_UNKNOWN.
   */
  wait(key: string, options?: { timeoutMs?: number; signal?: AbortSignal; samples?: boolean }): Promise<RolloutState>
  /** Resolves when nothing of the rollout runs any more. A rollout that has ended stays as it is. Throws ROLLOUT_UNKNOWN. */
  cancel(key: string): Promise<RolloutState>
  events(query: EventQuery, signal: AbortSignal): AsyncGenerator<EventEntry, void, void>
  /** Calls `listener` with every event at once, before the rollout goes on. The returned function ends this. */
  listen(listener: (event: RunEvent) => void): () => void
  counts(): RolloutServiceCounts
  /** Takes no more rollouts. Resolves when none is queued or running, or when the signal aborts. */
  drain(signal: AbortSignal): Promise<void>
  /** Cancels the remaining rollouts. */
  close(): Promise<void>
}

interface Entry {
  readonly hash: string
  readonly bytes: number
  readonly submittedAt: number
  readonly controller: AbortController
  /** Resolves when it is queued on disk; `null` if no later process runs it again. */
  readonly accepted: Promise<void> | null
  status: Exclude<RolloutState['status'], 'interrupted'>
  error: TrainError | null
  /** Whether its episode is a failure of the infrastructure. */
  isLost: boolean
  /**
   * Resolves to the episode, if there is one, when the rollout has ended. `null` after that: those who waited have the episode,
   * and later readers ask the store.
   */
  ended: Promise<Episode | null> | null
}

/** The status of a rollout, without its episode. */
function receipt(key: string, status: RolloutState['status']): RolloutState {
  return { version: 1, id: key, status, episode: null, samples: [], error: null }
}

/** Status of a rollout that an earlier service left without a result. */
function endOf(error: ErrorRecord | null): RolloutState['status'] {
  if (error === null) return 'interrupted'
  return error.code === 'ROLLOUT_CANCELLED' ? 'cancelled' : 'failed'
}

type Samples = Pick<RolloutState, 'samples' | 'error'>

/** The samples of an episode. An episode that cannot be trained, such as one sampled with top-p, has only the reason. */
function buildSamples(episode: Episode): Samples {
  try {
    return { samples: toTrainingSamples(episode).samples, error: null }
  } catch (cause) {
    return { samples: [], error: toTrainError(cause, 'STORE_CORRUPT').toRecord() }
  }
}

/** The result of `work`; `undefined` if the time ends or the signal aborts first. */
async function within<T>(work: Promise<T>, timeoutMs?: number, signal?: AbortSignal): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  const timer = timeoutMs === undefined ? undefined : setTimeout(resolve, timeoutMs, undefined)
  signal?.addEventListener('abort', () => resolve(undefined), { once: true })
  const first = signal?.aborted ? undefined : await Promise.race([work, promise])
  clearTimeout(timer)
  return first
}

const again: ReadonlySet<RolloutState['status']> = new Set(['cancelled', 'failed'])

export function createRolloutService({ openRunner, store, check, ...options }: RolloutServiceOptions): RolloutService {
  const limits = { ...defaultServiceLimits, ...options.limits }
  const feed = createEventFeed({ maxEvents: limits.maxKeptEvents })
  const entries = new Map<string, Entry>()
  const ended: string[] = []
  /** All who wait for a rollout get the same episode, whose samples are built once. */
  const built = new WeakMap<Episode, Samples>()
  const count = { queued: 0, running: 0, queuedBytes: 0, done: 0, failed: 0, cancelled: 0 }
  const ends: Partial<Record<StopReason, number>> = {}
  const listeners = new Set<(event: RunEvent) => void>()
  let durationMs = 0
  let stopping = false

  const runner = openRunner((event) => {
    if (event.type === 'rollout-start') {
      const entry = entries.get(event.rollout)
      if (entry?.status === 'queued') {
        entry.status = 'running'
        count.queued--
        count.running++
      }
    }
    if (event.type === 'rollout-end') {
      ends[event.stopReason] = (ends[event.stopReason] ?? 0) + 1
      durationMs += event.durationMs
    }
    feed.append(event)
    for (const listener of listeners) listener(event)
  })

  function settle(key: string, entry: Entry, result: Episode | TrainError): Episode | null {
    const error = result instanceof TrainError ? result : null
    const status = error === null ? 'done' : error.code === 'ROLLOUT_CANCELLED' ? 'cancelled' : 'failed'
    if (entry.status === 'queued' || entry.status === 'running') count[entry.status]--
    count[status]++
    count.queuedBytes -= entry.bytes
    entry.status = status
    entry.error = error
    entry.isLost = !(result instanceof TrainError) && isInfrastructureFailure(result)
    entry.ended = null
    // Later readers find the reason in the store. If this write fails too, the rollout runs again.
    if (error !== null && status === 'failed' && entry.accepted) store.releaseSubmission(key, error.toRecord()).catch(() => {})
    ended.push(key)
    const oldest = ended.length > limits.maxRemembered && ended.shift()
    if (oldest && entries.get(oldest)?.ended === null) entries.delete(oldest)
    return result instanceof TrainError ? null : result
  }

  function start(request: RolloutRequest, hash: string, bytes: number, accept: boolean): Entry {
    const { key } = request
    const controller = new AbortController()
    // This write comes before the runner's own, which then find the rollout queued.
    const accepted = accept ? store.keepSubmission(request) : null
    accepted?.catch((cause: unknown) => controller.abort(cause))
    const entry: Entry = {
      hash,
      bytes,
      submittedAt: Date.now(),
      controller,
      accepted,
      status: 'queued',
      error: null,
      isLost: false,
      ended: null,
    }
    // Deleting it first keeps entries in the order of their submission.
    entries.delete(key)
    entries.set(key, entry)
    count.queued++
    count.queuedBytes += bytes
    feed.append({ type: 'rollout-queued', at: Date.now(), rollout: key, split: request.split })
    entry.ended = runner
      .run(request, controller.signal)
      .catch((cause: unknown) => toTrainError(cause, 'STORE_FAILED'))
      .then((result) => settle(key, entry, result))
    return entry
  }

  function samplesOf(episode: Episode): Samples {
    const samples = built.get(episode) ?? buildSamples(episode)
    built.set(episode, samples)
    return samples
  }

  function done(key: string, episode: Episode, samples = true): RolloutState {
    return { ...receipt(key, 'done'), episode, ...(samples && samplesOf(episode)) }
  }

  function get(key: string, samples?: boolean): RolloutState {
    const entry = entries.get(key)
    const record = entry ?? store.rollout(key)
    if (!record) throw new TrainError('ROLLOUT_UNKNOWN', `There is no rollout "${key}"; submit it, or correct the key.`)
    const episode = record.status === 'done' ? store.episode(key) : null
    if (episode) return done(key, episode, samples)
    if (entry) return { ...receipt(key, entry.status), error: entry.error?.toRecord() ?? null }
    const { status, error } = record as RolloutRecord
    return { ...receipt(key, status === 'done' ? status : endOf(error)), error }
  }

  function submit(request: RolloutRequest, accept = false): RolloutState {
    const { key } = request
    const text = stableStringify(request)
    const hash = stableHash(text)
    const entry = entries.get(key)
    const record = entry ? null : store.rollout(key)
    if (entry ? entry.hash !== hash : record && stableStringify(record.request) !== text) {
      const message = `Rollout "${key}" was submitted before with another request; use another key for this one.`
      throw new TrainError('ROLLOUT_CONFLICT', message)
    }
    if (entry && !again.has(entry.status) && !entry.isLost) return receipt(key, entry.status)
    if (record?.status === 'done' && !isLostRollout(key)) return receipt(key, 'done')
    if (stopping) throw cancelled(key, new Error('The service is stopping; submit the rollout again when it is back.'))
    check?.(request)
    const bytes = Buffer.byteLength(text)
    if (count.queuedBytes + bytes > limits.maxQueuedBytes) {
      const message = `Rollout "${key}" has ${bytes} bytes; the queue holds ${count.queuedBytes} of ${limits.maxQueuedBytes}. Submit it again when some have ended, or raise maxQueuedBytes.`
      throw new TrainError('ROLLOUT_QUEUE_FULL', message)
    }
    return receipt(key, start(request, hash, bytes, accept).status)
  }

  /** Whether it was ended by a failure of the infrastructure; the same request then runs it again. */
  function isLostRollout(key: string): boolean {
    const episode = store.episode(key)
    return episode !== null && isInfrastructureFailure(episode)
  }

  function oldestQueuedMs(): number {
    if (count.queued === 0) return 0
    for (const { status, submittedAt } of entries.values()) if (status === 'queued') return Date.now() - submittedAt
    return 0
  }

  async function idle(): Promise<void> {
    await Promise.all(Array.from(entries.values(), (entry) => entry.ended))
  }

  for (const request of store.submissions()) {
    const record = store.rollout(request.key)
    if (record?.status === 'running' && record.attempt + 1 >= limits.maxAttemptsOfRestarts) continue
    try {
      check?.(request)
    } catch {
      // It stays interrupted. Whoever submits it again is told why it cannot run.
      continue
    }
    const text = stableStringify(request)
    start(request, stableHash(text), Buffer.byteLength(text), true)
  }

  return {
    submit: (request) => submit(request),
    async accept(request) {
      const state = submit(request, true)
      await entries.get(request.key)?.accepted
      return state
    },
    get,
    async wait(key, { timeoutMs, signal, samples } = {}) {
      const ended = entries.get(key)?.ended
      const episode = ended && (await within(ended, timeoutMs, signal))
      return episode ? done(key, episode, samples) : get(key, samples)
    },
    async cancel(key) {
      const entry = entries.get(key)
      if (entry?.ended) {
        const error = new TrainError('ROLLOUT_CANCELLED', `Rollout "${key}" was cancelled; submit it again to run it.`)
        entry.controller.abort(error)
        await Promise.all([entry.ended, entry.accepted && store.releaseSubmission(key, error.toRecord())])
      }
      return get(key)
    },
    events: (query, signal) => feed.read(query, signal),
    listen(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    counts: () => ({ ...count, oldestQueuedMs: oldestQueuedMs(), ends: { ...ends }, durationMs, stopping }),
    async drain(signal) {
      stopping = true
      if (signal.aborted) return
      const aborted = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
      await Promise.race([idle(), aborted])
    },
    async close() {
      stopping = true
      for (const [key, { ended, accepted, controller }] of entries) {
        const next = accepted ? 'it runs again when the service is back' : 'submit it again'
        if (ended) controller.abort(new TrainError('ROLLOUT_CANCELLED', `The service stopped before rollout "${key}" ended; ${next}.`))
      }
      await runner.close?.()
      await idle()
      feed.close()
    },
  }
}
