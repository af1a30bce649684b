import { TrainError } from '@aworld-train/core'
import type { Pool } from '../pool/pool.ts'
import { samplerWord, threadWord, threadWords } from './sampler-layout.ts'

/** Interval at which tokens of running rows are handed over, and idle workers may leave. */
const tickMs = 25
/** A thread that has rows and does not finish a step within this time counts as hung. */
const hungAfterMs = 60_000
/** The pool ends workers that have not left the decode command after this time. */
const closeDeadlineMs = 5_000

export interface DecodeLoopOwner {
  /** Whether a thread has rows to sample. */
  hasRows(thread: number): boolean
  /** Processes the rows after one has finished or waits, and from time to time with `progress`. */
  collect(progress: boolean): void
  /** The pool is lost, and nothing more will be sampled. */
  fail(error: unknown): void
}

/** Keeps the pool's threads in the decode command while there are rows, and out of it while others need the pool. */
export class DecodeLoop {
  readonly #pool: Pool
  readonly #owner: DecodeLoopOwner
  readonly #words: Int32Array
  readonly #control: number
  #session: Promise<void> | null = null
  #tick: NodeJS.Timeout | undefined
  #holds = 0
  #closed = false

  constructor(pool: Pool, owner: DecodeLoopOwner) {
    this.#pool = pool
    this.#owner = owner
    this.#words = pool.views.i32
    this.#control = pool.layout.sampler.control / 4
  }

  /** Whether workers may be working on rows. */
  get running(): boolean {
    return this.#session !== null
  }

  /** Lets the workers in, unless they are in, there is no work, or the pool is held. */
  start(): void {
    if (this.#session || this.#holds > 0 || this.#closed || !this.#hasRows()) return
    const prepare = (): void => {
      // A hold may have begun while the command queued.
      Atomics.store(this.#words, this.#control + samplerWord.stop, this.#holds > 0 || this.#closed ? 1 : 0)
    }
    this.#tick = this.#watch()
    const end = (): void => {
      clearInterval(this.#tick)
      this.#session = null
      this.#owner.collect(false)
      this.#raise(this.#control + samplerWord.events)
      this.start()
    }
    this.#session = this.#pool
      .run('decode', { prepare, deadlineMs: Number.POSITIVE_INFINITY })
      .catch((error: unknown) => {
        this.#closed = true
        this.#owner.fail(error)
      })
      .then(end)
    void this.#listen(this.#session)
  }

  /** Makes a thread check its rows. */
  wake(thread: number): void {
    this.#raise(this.#threadAt(thread) + threadWord.work)
  }

  /** Keeps the workers out while `work` runs. */
  async exclusive<T>(work: () => Promise<T>): Promise<T> {
    this.#holds++
    this.#end()
    try {
      await this.#session
      return await work()
    } finally {
      this.#holds--
      this.start()
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#end()
    if (!this.#session) return
    const { promise: late, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, closeDeadlineMs)
    await Promise.race([this.#session, late])
    clearTimeout(timer)
    clearInterval(this.#tick)
  }

  #end(): void {
    if (!this.#session) return
    Atomics.store(this.#words, this.#control + samplerWord.stop, 1)
    for (let thread = 0; thread < this.#pool.threads; thread++) this.wake(thread)
  }

  /** Hands over tokens of running rows, ends an idle session, and notices a thread that hangs. */
  #watch(): NodeJS.Timeout {
    const moved = Array.from({ length: this.#pool.threads }, () => ({ steps: -1, at: performance.now() }))
    return setInterval(() => {
      this.#owner.collect(true)
      if (!this.#hasRows()) this.#end()
      const now = performance.now()
      moved.forEach((last, thread) => {
        const steps = Atomics.load(this.#words, this.#threadAt(thread) + threadWord.steps)
        if (steps !== last.steps || !this.#owner.hasRows(thread)) {
          last.steps = steps
          last.at = now
        } else if (now - last.at > hungAfterMs) {
          this.#owner.fail(
            new TrainError('POLICY_WORKER_DIED', `Worker ${thread} of the engine made no step in ${hungAfterMs / 1000} s; start it again.`),
          )
        }
      })
    }, tickMs)
  }

  async #listen(session: Promise<void>): Promise<void> {
    const events = this.#control + samplerWord.events
    while (this.#session === session) {
      const seen = Atomics.load(this.#words, events)
      this.#owner.collect(false)
      const change = Atomics.waitAsync(this.#words, events, seen)
      if (change.async) await change.value
    }
  }

  #hasRows(): boolean {
    for (let thread = 0; thread < this.#pool.threads; thread++) if (this.#owner.hasRows(thread)) return true
    return false
  }

  #raise(word: number): void {
    Atomics.add(this.#words, word, 1)
    Atomics.notify(this.#words, word)
  }

  #threadAt(thread: number): number {
    return this.#pool.layout.sampler.threads / 4 + thread * threadWords
  }
}
