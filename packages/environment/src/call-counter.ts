import type { EnvironmentCounts } from '@aworld-train/core'
import type { ServerConnection } from './server-connection.ts'

/** Adds up calls, as we and as the servers count them, over connections that come and go. */
export interface CallCounter {
  toolCalls: number
  toolErrors: number
  serversStarted: number
  serversLost: number
  /** Takes the final count of a connection that is about to close. `answering` is false if the server no longer answers. */
  settle(connection: ServerConnection, answering: boolean): Promise<void>
  read(live: Iterable<ServerConnection>): Promise<EnvironmentCounts>
}

export function createCallCounter(): CallCounter {
  let settled = 0
  let called = false
  let uncounted = false
  const pending = new Set<Promise<void>>()

  return {
    toolCalls: 0,
    toolErrors: 0,
    serversStarted: 0,
    serversLost: 0,
    async settle(connection, answering) {
      if (connection.sentCalls === 0) return
      called = true
      if (!answering) {
        uncounted = true
        return
      }
      const reading = connection.servedCalls().then((served) => {
        if (served === null) uncounted = true
        else settled += served
      })
      pending.add(reading)
      await reading.finally(() => pending.delete(reading))
    },
    async read(live) {
      await Promise.all(pending)
      const connections = [...live].filter((connection) => connection.sentCalls > 0)
      const before = settled
      const served = await Promise.all(connections.map((connection) => connection.servedCalls()))
      const isCounted = (called || connections.length > 0) && !uncounted && !served.includes(null)
      const total = served.reduce((sum: number, count) => sum + (count ?? 0), before)
      const { toolCalls, toolErrors, serversStarted, serversLost } = this
      return { toolCalls, toolErrors, serverToolCalls: isCounted ? total : null, serversStarted, serversLost }
    },
  }
}
