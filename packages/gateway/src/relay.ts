import { CallAborted } from './active-call.ts'
import type { Reservation } from './budget.ts'
import type { ModelCall } from './call.ts'
import { type ServeCallOptions, type ServedCall, settleDelivery } from './served-call.ts'
import { type Answer, createAnswer, sendNothing } from './stages/encode.ts'

/** A server's answer that is whole. Its client has not received the end of it. */
export interface RelayedAnswer {
  /** Records the turn. Resolves when it is durable. `abandoned` says that nobody waits for the answer. */
  record(abandoned: boolean): Promise<void>
  /** Sends the rest of the answer. */
  end(): void
}

/** A call to a server that answers in text: the parts in which such servers differ. */
export interface RelayedCall {
  /** Whether the client wants server-sent events. */
  readonly stream: boolean
  /** Whether the answer ends only when its turn is durable. Otherwise the turn is recorded after the end. */
  readonly recordsFirst: boolean
  /** Whether a meaningless byte may be sent at this point; within an event it may not. */
  isBetweenEvents(): boolean
  /** Reserves the most that the call may use of the rollout's budgets. */
  reserve(): Promise<Reservation>
  /** Asks the server and passes on what comes. Resolves when the answer is whole. */
  send(reservation: Reservation): Promise<RelayedAnswer>
}

/** The answer in the client's dialect to a call of which the gateway reads text and no tokens. `id` is unique among those of the agent. */
export function createTextAnswer({ agent, dialect, response }: ServeCallOptions, model: string, call: ModelCall, id: string): Answer {
  const head = {
    id: `${agent.idPrefix}-${id}`,
    created: Math.floor(Date.now() / 1000),
    model,
    call,
    promptTokenIds: new Int32Array(0),
    tokenText: () => '',
    memory: agent.memory,
  }
  return createAnswer(dialect, head, response)
}

/** Serves a call, whose model is known, to a server that answers in text. Resolves when its turn is durable and its answer was handed over. */
export async function relay({ options, active, progress }: ServedCall, call: RelayedCall): Promise<void> {
  const { session, dialect, response, observed } = options
  progress.stream = call.stream
  active.keepAwake(() => {
    if (call.isBetweenEvents()) sendNothing(dialect, response, call.stream)
  })
  const reservation = await call.reserve()
  try {
    const answer = await call.send(reservation)
    if (call.recordsFirst) await answer.record(false)
    const loss = active.lost()
    if (!loss) {
      active.startSending()
      answer.end()
    }
    if (!call.recordsFirst) {
      if (!loss) observed.answered()
      session.recordings++
      try {
        await answer.record(loss !== null)
      } finally {
        session.recordings--
      }
    }
    if (loss) throw new CallAborted(loss)
  } finally {
    reservation.release()
  }
  if (!(await active.sent)) throw new CallAborted('client-closed')
  if (progress.turn) settleDelivery(options, progress.turn, true)
}
