import { retryAfterMs } from '@aworld-train/core'
import type { Answered } from './retry.ts'

/** When a server is asked again that refused a call for load. */
export interface LoadGateOptions<Answer extends Answered> {
  /** Most calls under way at once. */
  readonly maxInFlight: number
  /** Most times that a call is sent again, and most refusals in a row that it waits through as one of those that would be under way. */
  readonly retries: number
  /** How long a call waits in all, in place of `retries`. */
  readonly patienceMs?: number | undefined
  /** The pause after the first refusal. It doubles with each one that follows, up to the longest. */
  readonly firstMs: number
  readonly longestMs: number
  /** Whether an answer refuses a call for load. */
  readonly isRefusal: (answer: Answer) => boolean
  /** Called with each refusal that closes the gate, how many there were in a row, and the pause. */
  readonly onClose?: ((refusal: Answer, inARow: number, pauseMs: number) => void) | undefined
}

export interface GateCall {
  readonly signal: AbortSignal
  /** Called with `true` when the call begins to be held back for load, and with `false` when it goes on or ends. */
  readonly onWait?: ((waits: boolean) => void) | undefined
}

/** A longer `Retry-After` is taken for this. */
const longestAskedMs = 3_600_000

/** Statuses that refuse a call for load; 529 is Anthropic's. */
const busy: ReadonlySet<number> = new Set([429, 529])
/** Statuses of a server that is away, and that refuse for load where they name a time. */
const away: ReadonlySet<number> = new Set([502, 503, 504])

/** Whether a server refused a call for load, so that other calls of it are best held back. */
export const isRefusedForLoad = ({ status, retryAfter = null }: Answered): boolean =>
  busy.has(status) || (away.has(status) && retryAfterMs(retryAfter) !== null)

/** A call on its way through the gate. */
class Passage<Answer> {
  readonly #call: GateCall
  /** How often it was refused itself. */
  refusals = 0
  /** Refusals in a row that it waited through. */
  sinceSuccess = 0
  /** When it was first held back; `null` before. */
  waitsSince: number | null = null
  /** Ends its wait: with an answer that is final for it, or with `null` if it may be sent. */
  settle: (answer: Answer | null) => void = () => {}
  #isHeld = false

  constructor(call: GateCall) {
    this.#call = call
  }

  hold(isHeld: boolean): void {
    if (isHeld) this.waitsSince ??= performance.now()
    if (isHeld === this.#isHeld) return
    this.#isHeld = isHeld
    this.#call.onWait?.(isHeld)
  }
}

/**
 * Holds back the calls of one server together. When it refuses one for load, no other is sent until the time that it names has passed, or a
 * pause that doubles. Then half as many calls as were under way are sent at once, one more after each answer, until none waits. A refused
 * call goes behind those that wait, so that one which is always refused does not keep others from being answered.
 */
export class LoadGate<Answer extends Answered> {
  readonly #options: LoadGateOptions<Answer>
  /** Calls that wait, in the order in which they are sent. */
  readonly #line = new Set<Passage<Answer>>()
  #inside = 0
  #limit: number
  /** When it opens again, for a gate that is closed. */
  #opensAt = 0
  #timer: NodeJS.Timeout | null = null
  /** Refusals that closed the gate since it last let a call have its answer, or gave one up. */
  #inARow = 0
  /** Number of all that closed it. A call that was sent before the newest says nothing about the time after it. */
  #closings = 0

  constructor(options: LoadGateOptions<Answer>) {
    this.#options = options
    this.#limit = options.maxInFlight
  }

  /**
   * Sends a call when its turn comes, and again while it is refused for load and there is patience. Resolves to its last answer, or to the
   * last refusal of another call. Rejects with the error of `send`, and with the signal's reason.
   */
  async run(send: () => Promise<Answer>, call: GateCall): Promise<Answer> {
    const passage = new Passage<Answer>(call)
    for (;;) {
      const final = await this.#enter(passage, call.signal)
      if (final) return final
      const closings = this.#closings
      const answer = await send().catch((error: unknown) => {
        this.#leave()
        throw error
      })
      if (!this.#options.isRefusal(answer)) {
        if (answer.status < 500 && closings === this.#closings) this.#succeed()
        this.#leave()
        return answer
      }
      passage.refusals++
      passage.sinceSuccess++
      const pauseMs = this.#close(answer, closings === this.#closings)
      this.#leave()
      if (!this.#isOver(passage, pauseMs)) continue
      this.#inARow = 0
      return answer
    }
  }

  /** Ends its timer. Calls that wait are ended by their signals. */
  close(): void {
    if (this.#timer) clearTimeout(this.#timer)
  }

  async #enter(passage: Passage<Answer>, signal: AbortSignal): Promise<Answer | null> {
    signal.throwIfAborted()
    if (this.#line.size === 0 && this.#hasRoom()) {
      this.#inside++
      return null
    }
    passage.hold(this.#isBusy())
    const { promise, resolve, reject } = Promise.withResolvers<Answer | null>()
    passage.settle = resolve
    const leave = () => {
      // A call that leaves must not be given a place before its rejection is seen.
      this.#line.delete(passage)
      reject(signal.reason)
    }
    signal.addEventListener('abort', leave, { once: true })
    this.#line.add(passage)
    try {
      return await promise
    } finally {
      signal.removeEventListener('abort', leave)
      passage.hold(false)
    }
  }

  #leave(): void {
    this.#inside--
    this.#wake()
  }

  #hasRoom = () => this.#timer === null && this.#inside < this.#limit
  #isBusy = () => this.#timer !== null || this.#limit < this.#options.maxInFlight

  #wake(): void {
    for (const passage of this.#line) {
      if (!this.#hasRoom()) return
      this.#inside++
      this.#end(passage, null)
    }
  }

  #end(passage: Passage<Answer>, final: Answer | null): void {
    this.#line.delete(passage)
    passage.settle(final)
  }

  /** An answer came to a call that was sent after the newest refusal. */
  #succeed(): void {
    this.#inARow = 0
    const { maxInFlight } = this.#options
    this.#limit = this.#line.size === 0 ? maxInFlight : Math.min(maxInFlight, this.#limit + 1)
    for (const passage of this.#line) {
      passage.sinceSuccess = passage.refusals
      passage.hold(this.#isBusy())
    }
  }

  /** Closes the gate for the pause that it returns. Calls that were under way together close it once. */
  #close(refusal: Answer, isNew: boolean): number {
    const { firstMs, longestMs, patienceMs, onClose } = this.#options
    const now = performance.now()
    // A server that asks for no pause, such as by a date that our clock has passed, is not asked again at once.
    const askedMs = retryAfterMs(refusal.retryAfter ?? null) || null
    const pauseMs =
      askedMs === null
        ? Math.min(firstMs * 2 ** this.#inARow, longestMs)
        : Math.min(askedMs, patienceMs === undefined ? longestMs : longestAskedMs)
    if (!isNew && askedMs === null) return Math.max(0, this.#opensAt - now)
    this.#openAt(isNew ? now + pauseMs : Math.max(this.#opensAt, now + pauseMs))
    for (const passage of this.#line) passage.hold(true)
    if (!isNew) return this.#opensAt - now
    this.#closings++
    this.#inARow++
    this.#limit = Math.max(1, Math.floor(this.#inside / 2))
    onClose?.(refusal, this.#inARow, pauseMs)
    this.#giveUp(refusal, pauseMs)
    return pauseMs
  }

  #openAt(at: number): void {
    if (this.#timer) clearTimeout(this.#timer)
    this.#opensAt = at
    this.#timer = setTimeout(() => {
      this.#timer = null
      this.#wake()
    }, at - performance.now())
  }

  /** Ends the wait of calls whose patience is over. Those for which there is no place anyway have not waited for load yet. */
  #giveUp(refusal: Answer, pauseMs: number): void {
    for (const passage of [...this.#line].slice(0, this.#options.maxInFlight)) {
      passage.sinceSuccess++
      if (!this.#isOver(passage, pauseMs)) continue
      this.#inARow = 0
      this.#end(passage, refusal)
    }
  }

  #isOver(passage: Passage<Answer>, pauseMs: number): boolean {
    const { retries, patienceMs } = this.#options
    if (patienceMs === undefined) return Math.max(passage.refusals, passage.sinceSuccess) > retries
    const now = performance.now()
    return now + pauseMs > (passage.waitsSince ?? now) + patienceMs
  }
}
