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

/** One call from its arrival until its answer is sent or its client has left. */
export class ActiveCall {
  readonly #response: ServerResponse
  readonly #controller = new AbortController()
  readonly #sent = Promise.withResolvers<boolean>()
  readonly #settled = Promise.withResolvers<void>()
  #loss: Loss | null = null
  #cut: Cut | null = null
  #sending = false
  #keepAwake: (() => void) | null = null
  #beats = 0

  /** Ties the call to its response: when the client hangs up, it is aborted. */
  constructor(response: ServerResponse) {
    this.#response = response
    response.once('close', () => {
      this.#sent.resolve(response.writableFinished)
      if (!response.writableFinished) this.#lose('client-closed')
    })
    if (response.destroyed) this.#lose('client-closed')
  }

  #lose(why: Loss): void {
    this.#loss ??= why
    this.#controller.abort(new CallAborted(why))
  }

  /** Aborts with a CallAborted as its reason. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  lost(): Loss | null {
    return this.#loss
  }

  wasCut(): Cut | null {
    return this.#cut
  }

  cut(why: Cut): void {
    this.#cut ??= why
    this.#controller.abort(new CallAborted(why))
  }

  /** Ends the call with its session: the engine is aborted, unless only sending the answer is left. */
  closeSession(): void {
    if (!this.#sending) this.#lose('session-closed')
  }

  /** Has `send` write a meaningless byte at every beat after the first, so that a waiting client does not give up. */
  keepAwake(send: () => void): void {
    this.#keepAwake = send
  }

  beat(): void {
    if (this.#beats++ > 0) this.#keepAwake?.()
  }

  /** From this call on, only the client's leaving ends the call early. */
  startSending(): void {
    this.#sending = true
  }

  /** Resolves to true if the whole answer was handed over. */
  get sent(): Promise<boolean> {
    return this.#sent.promise
  }

  /** Gives up on a client that does not read. */
  destroy(): void {
    this.#response.destroy()
  }

  /** Marks the call as ended: nothing more happens in it. */
  settle(): void {
    this.#settled.resolve()
  }

  get settled(): Promise<void> {
    return this.#settled.promise
  }
}
