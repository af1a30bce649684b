import {
  type Episode,
  type EpisodeReader,
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
import type { OpenRollouts } from '../rollout-table.ts'
import { createEventFeed, type EventEntry, type EventFeed, type EventQuery } from './event-feed.ts'
import { type ServiceRow, ServiceRows, toRolloutEnd } from './service-rows.ts'

type ServiceRunner = RolloutRunner & { readonly rollouts: OpenRollouts; close?(): Promise<void> }

export interface RolloutServiceOptions {
  /** Opens the runner, which reports the start and end of rollouts through `onEvent` and is closed with the service. */
  readonly openRunner: (onEvent: (event: RunEvent) => void) => ServiceRunner
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

type Standing = Pick<RolloutState, 'status' | 'error'>
type Samples = Pick<RolloutState, 'samples' | 'error'>

/** The status of a rollout, without its episode. */
function receipt(key: string, status: RolloutState['status']): RolloutState {
  return { version: 1, id: key, status, episode: null, samples: [], error: null }
}

/** Where a rollout stands that an earlier service left. */
function standingOf({ status, error }: RolloutRecord): Standing {
  if (status === 'done') return { status, error }
  if (error === null) return { status: 'interrupted', error }
  return { status: error.code === 'ROLLOUT_CANCELLED' ? 'cancelled' : 'failed', error }
}

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

export const createRolloutService = (options: RolloutServiceOptions): RolloutService => new RunnerService(options)

class RunnerService implements RolloutService {
  readonly #limits: RolloutServiceLimits
  readonly #store: RolloutServiceOptions['store']
  readonly #check: (request: RolloutRequest) => void
  readonly #runner: ServiceRunner
  readonly #rows: ServiceRows
  readonly #feed: EventFeed
  readonly #listeners = new Set<(event: RunEvent) => void>()
  readonly #ends: Partial<Record<StopReason, number>> = {}
  /** All who wait for a rollout get the same episode, whose samples are built once. */
  readonly #built = new WeakMap<Episode, Samples>()
  #durationMs = 0
  #isStopping = false

  constructor({ openRunner, store, check = () => {}, limits }: RolloutServiceOptions) {
    this.#limits = { ...defaultServiceLimits, ...limits }
    this.#store = store
    this.#check = check
    this.#rows = new ServiceRows(this.#limits.maxRemembered)
    this.#feed = createEventFeed({ maxEvents: this.#limits.maxKeptEvents })
    this.#runner = openRunner((event) => this.#report(event))
    for (const request of store.submissions()) this.#startAgain(request)
  }

  submit(request: RolloutRequest): RolloutState {
    return this.#submit(request, false)
  }

  async accept(request: RolloutRequest): Promise<RolloutState> {
    const state = this.#submit(request, true)
    await this.#rows.find(request.key)?.accepted
    return state
  }

  get(key: string, samples?: boolean): RolloutState {
    const { status, error } = this.#standingOf(key)
    const episode = status === 'done' ? this.#store.episode(key) : null
    return episode ? this.#done(episode, samples) : { ...receipt(key, status), error }
  }

  async wait(key: string, { timeoutMs, signal, samples }: Parameters<RolloutService['wait']>[1] = {}): Promise<RolloutState> {
    const ended = this.#rows.find(key)?.ended
    const episode = ended && (await within(ended, timeoutMs, signal))
    return episode ? this.#done(episode, samples) : this.get(key, samples)
  }

  async cancel(key: string): Promise<RolloutState> {
    const row = this.#rows.find(key)
    if (row?.ended) {
      const error = new TrainError('ROLLOUT_CANCELLED', `Rollout "${key}" was cancelled; submit it again to run it.`)
      row.controller.abort(error)
      await Promise.all([row.ended, row.accepted && this.#store.releaseSubmission(key, error.toRecord())])
    }
    return this.get(key)
  }

  events(query: EventQuery, signal: AbortSignal): AsyncGenerator<EventEntry, void, void> {
    return this.#feed.read(query, signal)
  }

  listen(listener: (event: RunEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  counts(): RolloutServiceCounts {
    const { rollouts } = this.#runner
    return {
      queued: rollouts.queued,
      running: this.#rows.open - rollouts.queued,
      queuedBytes: this.#rows.openBytes,
      ...this.#rows.ends(),
      oldestQueuedMs: rollouts.oldestQueuedMs(),
      ends: { ...this.#ends },
      durationMs: this.#durationMs,
      stopping: this.#isStopping,
    }
  }

  async drain(signal: AbortSignal): Promise<void> {
    this.#isStopping = true
    if (signal.aborted) return
    const aborted = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    await Promise.race([this.#idle(), aborted])
  }

  async close(): Promise<void> {
    this.#isStopping = true
    for (const { key, accepted, controller } of this.#rows.allOpen()) {
      const next = accepted ? 'it runs again when the service is back' : 'submit it again'
      controller.abort(new TrainError('ROLLOUT_CANCELLED', `The service stopped before rollout "${key}" ended; ${next}.`))
    }
    await this.#runner.close?.()
    await this.#idle()
    this.#feed.close()
  }

  #submit(request: RolloutRequest, accept: boolean): RolloutState {
    const { key } = request
    const text = stableStringify(request)
    const hash = stableHash(text)
    const row = this.#rows.find(key)
    const record = row ? null : this.#store.rollout(key)
    if (row ? row.hash !== hash : record && stableStringify(record.request) !== text) {
      const message = `Rollout "${key}" was submitted before with another request; use another key for this one.`
      throw new TrainError('ROLLOUT_CONFLICT', message)
    }
    if (row && !(row.end && (again.has(row.end.status) || row.end.isLost))) return receipt(key, this.#standingOf(key).status)
    if (record?.status === 'done' && !this.#isLost(key)) return receipt(key, 'done')
    if (this.#isStopping) throw cancelled(key, new Error('The service is stopping; submit the rollout again when it is back.'))
    this.#check(request)
    const bytes = Buffer.byteLength(text)
    const { openBytes } = this.#rows
    if (openBytes + bytes > this.#limits.maxQueuedBytes) {
      const message = `Rollout "${key}" has ${bytes} bytes; the queue holds ${openBytes} of ${this.#limits.maxQueuedBytes}. Submit it again when some have ended, or raise maxQueuedBytes.`
      throw new TrainError('ROLLOUT_QUEUE_FULL', message)
    }
    this.#start(request, { hash, bytes, accept })
    return receipt(key, 'queued')
  }

  #start(request: RolloutRequest, { hash, bytes, accept }: Pick<ServiceRow, 'hash' | 'bytes'> & { readonly accept: boolean }): void {
    const { key, split } = request
    const controller = new AbortController()
    // This write comes before the runner's own, which then find the rollout queued.
    const accepted = accept ? this.#store.keepSubmission(request) : null
    accepted?.catch((cause: unknown) => controller.abort(cause))
    const row: ServiceRow = { key, hash, bytes, controller, accepted, ended: null, end: null }
    this.#rows.add(row)
    this.#feed.append({ type: 'rollout-queued', at: Date.now(), rollout: key, split })
    row.ended = this.#runner
      .run(request, controller.signal)
      .catch((cause: unknown) => toTrainError(cause, 'STORE_FAILED'))
      .then((result) => this.#settle(row, result))
  }

  /** Runs again what an earlier service accepted and left without a result. */
  #startAgain(request: RolloutRequest): void {
    const record = this.#store.rollout(request.key)
    if (record?.status === 'running' && record.attempt + 1 >= this.#limits.maxAttemptsOfRestarts) return
    try {
      this.#check(request)
    } catch {
      // It stays interrupted. Whoever submits it again is told why it cannot run.
      return
    }
    const text = stableStringify(request)
    this.#start(request, { hash: stableHash(text), bytes: Buffer.byteLength(text), accept: true })
  }

  #settle(row: ServiceRow, result: Episode | TrainError): Episode | null {
    const end = toRolloutEnd(result)
    this.#rows.settle(row, end)
    // Later readers find the reason in the store. If this write fails too, the rollout runs again.
    if (end.status === 'failed' && row.accepted) this.#store.releaseSubmission(row.key, end.error!.toRecord()).catch(() => {})
    return result instanceof TrainError ? null : result
  }

  #report(event: RunEvent): void {
    if (event.type === 'rollout-end') {
      this.#ends[event.stopReason] = (this.#ends[event.stopReason] ?? 0) + 1
      this.#durationMs += event.durationMs
    }
    this.#feed.append(event)
    for (const listener of this.#listeners) listener(event)
  }

  #standingOf(key: string): Standing {
    const row = this.#rows.find(key)
    if (row?.end) return { status: row.end.status, error: row.end.error?.toRecord() ?? null }
    if (row) return { status: this.#runner.rollouts.isQueued(key) ? 'queued' : 'running', error: null }
    const record = this.#store.rollout(key)
    if (!record) throw new TrainError('ROLLOUT_UNKNOWN', `There is no rollout "${key}"; submit it, or correct the key.`)
    return standingOf(record)
  }

  /** Whether it was ended by a failure of the infrastructure; the same request then runs it again. */
  #isLost(key: string): boolean {
    const episode = this.#store.episode(key)
    return episode !== null && isInfrastructureFailure(episode)
  }

  #done(episode: Episode, samples = true): RolloutState {
    return { ...receipt(episode.rollout, 'done'), episode, ...(samples && this.#samplesOf(episode)) }
  }

  #samplesOf(episode: Episode): Samples {
    const samples = this.#built.get(episode) ?? buildSamples(episode)
    this.#built.set(episode, samples)
    return samples
  }

  async #idle(): Promise<void> {
    await Promise.all(this.#rows.allOpen().map(({ ended }) => ended))
  }
}
