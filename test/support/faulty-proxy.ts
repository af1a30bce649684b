import { once } from 'node:events'
import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net'

/** A port of loopback before another one. Its connections fail like those of a network. */
export interface FaultyProxy extends AsyncDisposable {
  readonly url: string
  /** Number of connections since the start. */
  connections(): number
  /** Ends all connections at once, without a message of the protocol. */
  reset(): void
  /** Ends the data from the target. The other direction stays open. */
  halfClose(): void
  /** Stops all data on the present connections, without notice to either side. */
  blackHole(): void
}

export async function startFaultyProxy(target: string): Promise<FaultyProxy> {
  const { hostname, port } = new URL(target)
  const pairs = new Set<{ readonly client: Socket; readonly upstream: Socket }>()
  let connections = 0
  const server = createServer({ allowHalfOpen: true }, (client) => {
    connections++
    const upstream = createConnection({ host: hostname, port: Number(port), allowHalfOpen: true })
    const pair = { client, upstream }
    pairs.add(pair)
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      from.pipe(to)
      from.on('error', () => to.destroy())
      from.on('close', () => pairs.delete(pair))
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    connections: () => connections,
    reset() {
      for (const { client, upstream } of pairs) {
        client.resetAndDestroy()
        upstream.resetAndDestroy()
      }
    },
    halfClose() {
      for (const { client, upstream } of pairs) {
        upstream.unpipe(client)
        client.end()
      }
    },
    blackHole() {
      for (const { client, upstream } of pairs) {
        client.unpipe(upstream)
        upstream.unpipe(client)
        // Data is read and dropped, so that neither side notices that nobody listens.
        client.resume()
        upstream.resume()
      }
    },
    async [Symbol.asyncDispose]() {
      for (const { client, upstream } of pairs) {
        client.destroy()
        upstream.destroy()
      }
      server.close()
      await once(server, 'close')
    },
  }
}
