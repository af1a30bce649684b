import { type EndedAttempt, type Episode, type RolloutRequest, TrainError } from '@aworld-train/core'
import type { Span } from '@opentelemetry/api'
import type { AttemptResult } from './run-attempt.ts'

/** The attempt that a worker has or had last. */
export interface CurrentAttempt {
  readonly number: number
  readonly worker: string
  /** The hash of the agent that this worker has; `null` for this process. */
  readonly agent: string | null
  /** Milliseconds of the process's clock. */
  readonly startedAt: number
  /** Aborts when the agent is to stop. */
  readonly stop: AbortController
  /** Aborts when its worker is lost and its result is no longer waited for. */
  readonly lost: AbortController
  result: AttemptResult | null
}

/** State that this process keeps for a rollout without a result. The scheduler keeps its place in line under the same key. */
export interface RolloutEntry {
  readonly request: RolloutRequest
  /** Milliseconds since the epoch. */
  readonly submittedAt: number
  /** Aborts when the rollout is cancelled. */
  readonly cancelling: AbortController
  readonly settle: { readonly resolve: (episode: Episode) => void; readonly reject: (error: unknown) => void }
  /** Ends the watch of the caller's signal. */
  unwatch: () => void
  /** `null` before its first attempt. */
  span: Span | null
  /** The number that the store gave last; `null` before the first. */
  number: number | null
  /** The attempt that the next one follows. */
  before: EndedAttempt | null
  /** `null` while no worker has the rollout. */
  attempt: CurrentAttempt | null
  /** Whether its first attempt has begun. */
  hasStarted: boolean
  /** Whether it has ended without a result, which is not on disk so far. */
  isEnding: boolean
  /** Resolves when all turns of earlier attempts are on record. The store refuses them once the next attempt has begun. */
  recorded: Promise<void>
}

/** A rollout that a worker has. */
export interface RunningRollout {
  readonly key: string
  readonly attempt: CurrentAttempt
}

/** The part of a table that others than its runner read. Rollouts without an attempt so far are queued. */
export interface OpenRollouts {
  /** Number of queued rollouts. */
  readonly queued: number
  isQueued(key: string): boolean
  /** Milliseconds that the first queued rollout has waited; 0 where there is none. */
  oldestQueuedMs(): number
}

/** The rollouts of a runner that have no result yet, in the order of their submission. */
export class RolloutTable implements OpenRollouts {
  readonly #entries = new Map<string, RolloutEntry>()
  readonly #idlers: (() => void)[] = []
  #started = 0

  /** Throws ROLLOUT_CONFLICT for a key that is under way. */
  add(request: RolloutRequest, settle: RolloutEntry['settle']): RolloutEntry {
    const { key } = request
    if (this.#entries.has(key)) throw new TrainError('ROLLOUT_CONFLICT', `Rollout "${key}" is under way; wait for it, or use another key.`)
    const entry: RolloutEntry = {
      request,
      submittedAt: Date.now(),
      cancelling: new AbortController(),
      settle,
      unwatch: () => {},
      span: null,
      number: null,
      before: null,
      attempt: null,
      hasStarted: false,
      isEnding: false,
      recorded: Promise.resolve(),
    }
    this.#entries.set(key, entry)
    return entry
  }

  /** The rollout of a key, unless it is ending. */
  find(key: string): RolloutEntry | undefined {
    const entry = this.#entries.get(key)
    return entry?.isEnding ? undefined : entry
  }

  /** All rollouts but those that are ending. */
  all(): RolloutEntry[] {
    return [...this.#entries.values()].filter(({ isEnding }) => !isEnding)
  }

  get queued(): number {
    return this.#entries.size - this.#started
  }

  isQueued(key: string): boolean {
    return this.#entries.get(key)?.hasStarted === false
  }

  oldestQueuedMs(): number {
    for (const { hasStarted, submittedAt } of this.#entries.values()) if (!hasStarted) return Date.now() - submittedAt
    return 0
  }

  /** An attempt of it begins. Returns whether that is its first. */
  start(entry: RolloutEntry): boolean {
    if (entry.hasStarted) return false
    entry.hasStarted = true
    this.#started += 1
    return true
  }

  /** Ends a rollout and the watch of its caller's signal. It counts as it did until it is removed. Returns false where it ended before. */
  end(entry: RolloutEntry): boolean {
    if (this.find(entry.request.key) !== entry) return false
    entry.unwatch()
    entry.isEnding = true
    return true
  }

  /** Removes a rollout that has ended. */
  remove(entry: RolloutEntry): void {
    this.#entries.delete(entry.request.key)
    if (entry.hasStarted) this.#started -= 1
    if (this.#entries.size === 0) for (const wake of this.#idlers.splice(0)) wake()
  }

  /** The rollout whose attempt has run longest; `null` where none runs. */
  oldest(): RunningRollout | null {
    let oldest: RunningRollout | null = null
    for (const { request, attempt } of this.all())
      if (attempt && (!oldest || attempt.startedAt < oldest.attempt.startedAt)) oldest = { key: request.key, attempt }
    return oldest
  }

  /** Resolves when no rollout is left. */
  async untilEmpty(): Promise<void> {
    if (this.#entries.size > 0) await new Promise<void>((wake) => this.#idlers.push(wake))
  }
}
