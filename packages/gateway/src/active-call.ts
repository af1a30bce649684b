import type { ServerResponse } from 'node:http'

/** Why nobody waits for a call any more. */
export type Loss = 'client-closed' | 'session-closed'

/** Why the gateway ended a completion that the engine would have continued. */
export type Cut = 'token-limit' | 'stop-string' | 'gateway-error'

/** The reason of a call's abort signal; an engine rejects with it. */
export class CallAborted extends Error {
  readonly why: Loss | Cut

  constructor(why: Loss | Cut) {
    super(`The call was ended: ${why}.`)
    this.name = 'CallAborted'
    this.why = why
  }
}

/** Sends a waiting client now and then a byte that means nothing. */
export interface KeepAwake {
  /** From now on a byte is sent at every second `beat` and after. */
  begin(send: () => void): void
  beat(): void
}

/** One call from its arrival until its answer has left, or its client has. What nobody asks for is not made. */
export class ActiveCall implements KeepAwake {
  readonly #response: ServerResponse
  #controller: AbortController | null = null
  #aborted: CallAborted | null = null
  #loss: Loss | null = null
  #cut: Cut | null = null
  #sending = false
  #handedOver: boolean | null = null
  #onSent: ((handedOver: boolean) => void) | null = null
  #isSettled = false
  #settled: PromiseWithResolvers<void> | null = null
  #awake: (() => void) | null = null
  #beats = 0

  /** Ties the call to its response: when the client hangs up, it is aborted. */
  constructor(response: ServerResponse) {
    this.#response = response
    response.once('close', () => this.#closed())
    if (response.destroyed) this.#lose('client-closed')
  }

  #closed(): void {
    this.#handedOver = this.#response.writableFinished
    this.#onSent?.(this.#handedOver)
    this.#onSent = null
    if (!this.#handedOver) this.#lose('client-closed')
  }

  #lose(why: Loss): void {
    this.#loss ??= why
    this.#abort(why)
  }

  #abort(why: Loss | Cut): void {
    if (this.#aborted) return
    this.#aborted = new CallAborted(why)
    this.#controller?.abort(this.#aborted)
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.#aborted) this.#controller.abort(this.#aborted)
    }
    return this.#controller.signal
  }

  /** What the signal has as its reason; `null` while it has not aborted. */
  aborted(): CallAborted | null {
    return this.#aborted
  }

  lost(): Loss | null {
    return this.#loss
  }

  wasCut(): Cut | null {
    return this.#cut
  }

  cut(why: Cut): void {
    this.#cut ??= why
    this.#abort(why)
  }

  /** The session is over: the engine is aborted, unless only the sending of the answer is left. */
  closeSession(): void {
    if (!this.#sending) this.#lose('session-closed')
  }

  /** What keeps the client from giving up while it waits. */
  get keepAwake(): KeepAwake {
    return this
  }

  begin(send: () => void): void {
    this.#awake = send
  }

  beat(): void {
    if (this.#beats++ > 0) this.#awake?.()
  }

  /** From now on only the client's going away ends the call. */
  startSending(): void {
    this.#sending = true
  }

  /** Resolves to whether the whole answer was handed over. */
  sent(): Promise<boolean> {
    return new Promise((resolve) => {
      if (this.#handedOver === null) this.#onSent = resolve
      else resolve(this.#handedOver)
    })
  }

  /** Gives up on a client that does not read. */
  destroy(): void {
    this.#response.destroy()
  }

  /** Nothing more will happen in this call. */
  settle(): void {
    this.#isSettled = true
    this.#settled?.resolve()
  }

  get settled(): Promise<void> {
    if (this.#isSettled) return Promise.resolve()
    this.#settled ??= Promise.withResolvers<void>()
    return this.#settled.promise
  }
}
