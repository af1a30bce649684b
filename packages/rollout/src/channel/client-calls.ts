import type { GenerateRequest, GenerateResult, TrainError } from '@aworld-train/core'
import type { EngineConnection } from './channel-connection.ts'
import { type ClientCall, type Submission, SubmissionTable } from './submission-table.ts'

/** A connection's calls by their numbers. */
interface Line {
  lastId: number
  readonly calls: Map<number, ClientCall>
}

/** Model calls of submissions, each carried by the connection of its submission, or waiting where there is none. */
export class ClientCalls {
  readonly submissions = new SubmissionTable()
  readonly #lines = new Map<EngineConnection, Line>()

  get connections(): number {
    return this.#lines.size
  }

  /** Number of calls under way. */
  get size(): number {
    return this.submissions.all().reduce((sum, { calls }) => sum + calls.size, 0)
  }

  join(connection: EngineConnection): void {
    this.#lines.set(connection, { lastId: 0, calls: new Map() })
  }

  /** The connection is lost. Returns the submissions that it leaves without one. */
  disconnect(connection: EngineConnection): Submission[] {
    this.#lines.delete(connection)
    return this.submissions.disconnect(connection)
  }

  /** Gives a submission its connection, which carries all its calls from now on. */
  connect(submission: Submission, connection: EngineConnection | null): void {
    // The same connection submitted it again, so its calls are under way.
    if (submission.connection === connection) return
    for (const call of submission.calls) {
      this.#abortAtClient(call)
      call.id = null
    }
    submission.connection = connection
    for (const call of submission.calls) this.#send(call)
  }

  begin(submission: Submission, request: GenerateRequest): { readonly call: ClientCall; readonly result: Promise<GenerateResult> } {
    const { promise, resolve, reject } = Promise.withResolvers<GenerateResult>()
    const call: ClientCall = { submission, request, resolve, reject, id: null }
    submission.calls.add(call)
    this.#send(call)
    return { call, result: promise }
  }

  /** The call that a connection carries under this number. */
  find(connection: EngineConnection, id: number): ClientCall | undefined {
    return this.#lines.get(connection)?.calls.get(id)
  }

  resolve(call: ClientCall, result: GenerateResult): void {
    this.#forget(call)
    call.resolve(result)
  }

  fail(call: ClientCall, error: unknown): void {
    this.#forget(call)
    call.reject(error)
  }

  /** Tells the trainer client to stop. A call that has ended stays as it is. */
  abort(call: ClientCall, reason: unknown): void {
    if (!call.submission.calls.has(call)) return
    this.#abortAtClient(call)
    this.fail(call, reason)
  }

  /** Ends a submission and its calls. Returns false where it had ended before. */
  release(submission: Submission, reason: TrainError): boolean {
    for (const call of submission.calls) this.abort(call, reason)
    return this.submissions.remove(submission)
  }

  abortAll(reason: TrainError): void {
    for (const { calls } of this.submissions.all()) for (const call of calls) this.abort(call, reason)
  }

  #send(call: ClientCall): void {
    const { submission, request } = call
    const { key, connection } = submission
    const line = connection && this.#lines.get(connection)
    if (!connection || !line) return
    const { promptTokenIds, sampling, random, origin } = request
    const { temperature, topP, topK, maxTokens, stop } = sampling
    call.id = ++line.lastId
    line.calls.set(call.id, call)
    connection.send(
      {
        type: 'generate',
        id: call.id,
        key,
        agent: origin!.agent,
        trajectory: origin!.trajectory,
        turn: random.turn,
        sampling: { temperature, topP, topK, maxTokens, stop: [...stop] },
      },
      { promptIds: promptTokenIds },
    )
  }

  #abortAtClient({ submission: { connection }, id }: ClientCall): void {
    if (connection === null || id === null) return
    this.#lines.get(connection)?.calls.delete(id)
    connection.send({ type: 'abort', id })
  }

  #forget(call: ClientCall): void {
    const { connection, calls } = call.submission
    if (connection && call.id !== null) this.#lines.get(connection)?.calls.delete(call.id)
    calls.delete(call)
  }
}
