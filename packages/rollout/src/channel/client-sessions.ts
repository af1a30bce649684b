import type { ChannelHello } from '@aworld-train/core'
import type { ChannelConnection } from './channel-connection.ts'

/** A worker of a trainer client. */
export interface ClientSession {
  readonly hello: ChannelHello
  /** `null` while its connection is lost. */
  connection: ChannelConnection | null
}

/** A worker that has joined. */
export interface JoinedSession {
  readonly session: ClientSession
  /** Whether it was there before. */
  readonly isBack: boolean
  /** The connection that it had until it joined again. */
  readonly replaced: ChannelConnection | null
}

const nameOf = ({ run, incarnation, worker }: ChannelHello) => JSON.stringify([run, incarnation, worker])

/** The workers of trainer clients, each with one session over all its connections. */
export class ClientSessions {
  readonly #sessions = new Map<string, ClientSession>()

  /** Gives a worker its connection. One that was there before keeps its session. */
  join(hello: ChannelHello, connection: ChannelConnection): JoinedSession {
    const existing = this.#sessions.get(nameOf(hello))
    const session = existing ?? { hello, connection: null }
    const replaced = session.connection
    session.connection = connection
    this.#sessions.set(nameOf(hello), session)
    return { session, isBack: existing !== undefined, replaced }
  }

  /** Whether other trainer clients use the model: all but older starts of the same run. */
  isBound({ run, incarnation }: ChannelHello): boolean {
    return [...this.#sessions.values()].some(({ hello }) => hello.run !== run || hello.incarnation === incarnation)
  }

  /** Removes the workers of other starts of the run and returns them. */
  removeOtherStarts({ run, incarnation }: ChannelHello): ClientSession[] {
    const others = [...this.#sessions.values()].filter(({ hello }) => hello.run === run && hello.incarnation !== incarnation)
    for (const other of others) this.remove(other)
    return others
  }

  remove({ hello }: ClientSession): void {
    this.#sessions.delete(nameOf(hello))
  }

  /** Number of workers with a connection. */
  connected(): number {
    return [...this.#sessions.values()].filter(({ connection }) => connection !== null).length
  }
}
