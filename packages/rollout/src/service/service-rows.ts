import { type Episode, isInfrastructureFailure, TrainError } from '@aworld-train/core'

/** How a rollout has ended. */
export interface RolloutEnd {
  readonly status: 'done' | 'failed' | 'cancelled'
  readonly error: TrainError | null
  /** Whether its episode is a failure of the infrastructure. */
  readonly isLost: boolean
}

/** What a service remembers of a rollout that was submitted to it. Its runner knows whether it runs, the store what came of it. */
export interface ServiceRow {
  readonly key: string
  readonly hash: string
  /** Bytes of its request. */
  readonly bytes: number
  readonly controller: AbortController
  /** Resolves when it is queued on disk; `null` if no later process runs it again. */
  readonly accepted: Promise<void> | null
  /**
   * Resolves to the episode, if there is one, when the rollout has ended. `null` after that: those who waited have the episode,
   * and later readers ask the store.
   */
  ended: Promise<Episode | null> | null
  /** `null` until it has ended. */
  end: RolloutEnd | null
}

export function toRolloutEnd(result: Episode | TrainError): RolloutEnd {
  if (!(result instanceof TrainError)) return { status: 'done', error: null, isLost: isInfrastructureFailure(result) }
  return { status: result.code === 'ROLLOUT_CANCELLED' ? 'cancelled' : 'failed', error: result, isLost: false }
}

/** The rollouts that were submitted to a service: all that have not ended, and the last that have. */
export class ServiceRows {
  readonly #rows = new Map<string, ServiceRow>()
  readonly #maxEnded: number
  readonly #endedKeys: string[] = []
  readonly #ends = { done: 0, failed: 0, cancelled: 0 }
  #open = 0
  #openBytes = 0

  constructor(maxEnded: number) {
    this.#maxEnded = maxEnded
  }

  /** Number of rollouts that have not ended. */
  get open(): number {
    return this.#open
  }

  get openBytes(): number {
    return this.#openBytes
  }

  /** Number of rollouts that have ended since the start, by how. */
  ends(): Readonly<Record<RolloutEnd['status'], number>> {
    return { ...this.#ends }
  }

  find(key: string): ServiceRow | undefined {
    return this.#rows.get(key)
  }

  /** Rows of rollouts that have not ended. */
  allOpen(): ServiceRow[] {
    return [...this.#rows.values()].filter(({ end }) => end === null)
  }

  add(row: ServiceRow): void {
    this.#rows.set(row.key, row)
    this.#open += 1
    this.#openBytes += row.bytes
  }

  /** A rollout has ended. The one that ended longest ago may be forgotten for it. */
  settle(row: ServiceRow, end: RolloutEnd): void {
    row.end = end
    row.ended = null
    this.#open -= 1
    this.#openBytes -= row.bytes
    this.#ends[end.status] += 1
    this.#endedKeys.push(row.key)
    if (this.#endedKeys.length <= this.#maxEnded) return
    const oldest = this.#endedKeys.shift()!
    // A rollout that was submitted again has not ended.
    if (this.#rows.get(oldest)?.end) this.#rows.delete(oldest)
  }
}
