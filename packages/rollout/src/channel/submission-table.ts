import type { ChannelSubmit, GenerateRequest, GenerateResult } from '@aworld-train/core'
import type { EngineConnection } from './channel-connection.ts'
import type { ClientSession } from './client-sessions.ts'

/** A model call on its way to a trainer client and back. */
export interface ClientCall {
  readonly submission: Submission
  readonly request: GenerateRequest
  readonly resolve: (result: GenerateResult) => void
  readonly reject: (error: unknown) => void
  /** Its number on the connection that carries it; `null` while it waits for a connection. */
  id: number | null
}

/** A rollout that a trainer client waits for, and samples for. */
export interface Submission {
  readonly key: string
  readonly submit: ChannelSubmit
  session: ClientSession
  /** The connection that submitted it last, which carries its model calls; `null` when that was lost. */
  connection: EngineConnection | null
  /** Its model calls under way. */
  readonly calls: Set<ClientCall>
}

/** The open submissions of trainer clients, and the keys whose last rollout is still being cancelled. */
export class SubmissionTable {
  readonly #open = new Map<string, Submission>()
  readonly #ending = new Map<string, Promise<void>>()

  get size(): number {
    return this.#open.size
  }

  add(session: ClientSession, submit: ChannelSubmit): Submission {
    const { key } = submit
    const submission: Submission = { key, submit, session, connection: session.connection, calls: new Set() }
    this.#open.set(key, submission)
    return submission
  }

  find(key: string): Submission | undefined {
    return this.#open.get(key)
  }

  /** The submission that the rollout of this key runs for. One that waits for the end of the last rollout of its key is not it. */
  served(key: string): Submission | undefined {
    return this.#ending.has(key) ? undefined : this.#open.get(key)
  }

  all(): Submission[] {
    return [...this.#open.values()]
  }

  /** The submissions of a worker. */
  of(session: ClientSession): Submission[] {
    return this.all().filter((submission) => submission.session === session)
  }

  /** Whether it is open. A later submission of its key is another one. */
  has(submission: Submission): boolean {
    return this.#open.get(submission.key) === submission
  }

  /** The connection is lost. Returns the submissions that it leaves without one. */
  disconnect(connection: EngineConnection): Submission[] {
    const abandoned = this.all().filter((submission) => submission.connection === connection)
    for (const submission of abandoned) submission.connection = null
    return abandoned
  }

  /** Returns false where it was removed before. */
  remove(submission: Submission): boolean {
    return this.has(submission) && this.#open.delete(submission.key)
  }

  /** The last rollout of the key is being cancelled until `cancelled` resolves. */
  end(key: string, cancelled: Promise<void>): void {
    const ended = cancelled.then(() => {
      if (this.#ending.get(key) === ended) this.#ending.delete(key)
    })
    this.#ending.set(key, ended)
  }

  /** Resolves when the last rollout of the key is cancelled; `null` where none is being cancelled. */
  ending(key: string): Promise<void> | null {
    return this.#ending.get(key) ?? null
  }

  /** Resolves when no rollout is being cancelled. */
  async untilEnded(): Promise<void> {
    await Promise.all(this.#ending.values())
  }
}
