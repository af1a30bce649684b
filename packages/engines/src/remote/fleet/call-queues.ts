/** A call that waits for a replica, of which one of `admit` and `reject` is called, once. */
export interface WaitingCall<Place> {
  readonly affinity: string
  /** Unix milliseconds. */
  readonly since: number
  admit(place: Place): void
  reject(error: unknown): void
}

/** Calls that wait in order of arrival: some for one replica, others for any. */
export class CallQueues<Place> {
  /** By replica, and last the calls that any may take. */
  readonly #queues: readonly Map<number, WaitingCall<Place>>[]
  readonly #anywhere: Map<number, WaitingCall<Place>>
  #arrivals = 0

  constructor(replicas: number) {
    this.#queues = Array.from({ length: replicas + 1 }, () => new Map())
    this.#anywhere = this.#queues[replicas]!
  }

  get size(): number {
    return this.#queues.reduce((sum, queue) => sum + queue.size, 0)
  }

  /** Since when the oldest call waits; `null` if none does. */
  get since(): number | null {
    return this.#queues.reduce<number | null>((oldest, queue) => {
      const [first] = queue.values()
      return first && (oldest === null || first.since < oldest) ? first.since : oldest
    }, null)
  }

  /** Number of calls that wait for replica `index` alone. */
  count(index: number): number {
    return this.#queues[index]!.size
  }

  /** Makes a call wait for replica `index`, or for any if it is `null`. Returns what takes it out. */
  add(index: number | null, call: WaitingCall<Place>): () => void {
    const queue = index === null ? this.#anywhere : this.#queues[index]!
    const sequence = this.#arrivals++
    queue.set(sequence, call)
    return () => {
      queue.delete(sequence)
      this.#anywhere.delete(sequence)
    }
  }

  /** Whether a call waits that replica `index` may take. */
  has(index: number): boolean {
    return this.#queues[index]!.size > 0 || this.#anywhere.size > 0
  }

  /** Takes the first call that replica `index` may take. */
  take(index: number): WaitingCall<Place> | null {
    const own = this.#queues[index]!
    const [first] = own.keys()
    const [other] = this.#anywhere.keys()
    const sequence = Math.min(first ?? Number.POSITIVE_INFINITY, other ?? Number.POSITIVE_INFINITY)
    const queue = sequence === first ? own : this.#anywhere
    const call = queue.get(sequence) ?? null
    queue.delete(sequence)
    return call
  }

  /** Makes calls that wait for one of these replicas wait for any, in their order of arrival. */
  unpin(indices: readonly number[]): void {
    const moved = indices.flatMap((index) => [...this.#queues[index]!])
    if (moved.length === 0) return
    for (const index of indices) this.#queues[index]!.clear()
    const sorted = [...this.#anywhere, ...moved].sort(([left], [right]) => left - right)
    this.#anywhere.clear()
    for (const [sequence, call] of sorted) this.#anywhere.set(sequence, call)
  }

  /** Rejects calls that have waited for any replica since before `since`. */
  expire(since: number, error: () => Error): void {
    for (const [sequence, call] of this.#anywhere) {
      if (call.since > since) return
      this.#anywhere.delete(sequence)
      call.reject(error())
    }
  }

  rejectAll(error: unknown): void {
    for (const queue of this.#queues) {
      for (const call of queue.values()) call.reject(error)
      queue.clear()
    }
  }
}
