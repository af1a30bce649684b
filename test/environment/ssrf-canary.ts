// Runs in a network of its own, whose private addresses all lead to a canary; see ssrf.test.ts. Prints what reached it.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { ToolError } from '@aworld-train/core'
import { openOutward } from '@aworld-train/http'
import { privateHosts } from '../../packages/http/src/testing/private-hosts.ts'

const port = 8080
const publicAddress = '93.184.216.34'

/** Addresses by name: in turn where there are several lists of them. */
const names: Readonly<Record<string, readonly (readonly string[])[]>> = {
  'int.test': [['10.0.0.5']],
  'meta.test': [['169.254.169.254']],
  'loop.test': [['127.0.0.1']],
  'cgnat.test': [['100.64.0.1']],
  'pub.test': [[publicAddress]],
  'mixed.test': [[publicAddress, '127.0.0.1']],
  'rebind.test': [[publicAddress], ['127.0.0.1']],
}

const hosts = [
  ...privateHosts,
  ...['localhost', 'LOCALHOST', 'localhost.', 'ip6-localhost'],
  ...['int.test', 'meta.test', 'loop.test', 'cgnat.test', 'mixed.test'],
]
const vectors = [
  ...hosts.map((host) => `http://${host}:${port}/`),
  `http://user:pw@127.0.0.1:${port}/`,
  `http://pub.test:${port}@127.0.0.1:${port}/`,
  `http://127.0.0.1:${port}\\@pub.test/`,
  `http://pub.test#@127.0.0.1:${port}/`,
]
const landings = [
  `http://127.0.0.1:${port}/landed`,
  `//127.0.0.1:${port}/landed`,
  `http://[::1]:${port}/landed`,
  `http://2130706433:${port}/landed`,
  `http://loop.test:${port}/landed`,
  'file:///etc/passwd',
]
const redirects = [301, 302, 303, 307, 308].flatMap((status) => landings.map((target) => ({ status, target })))

/** Answers the address records of `names`; an answer is stale at once. */
async function serveNames(): Promise<void> {
  const turns = new Map<string, number>()
  const socket = createSocket('udp4')
  socket.on('message', (query, peer) => {
    const labels: string[] = []
    let end = 12
    for (; query[end]; end += query[end]! + 1) labels.push(query.toString('latin1', end + 1, end + 1 + query[end]!))
    const name = labels.join('.').toLowerCase()
    const lists = query.readUInt16BE(end + 1) === 1 ? (names[name] ?? [[]]) : [[]]
    const turn = turns.get(name) ?? 0
    if (query.readUInt16BE(end + 1) === 1) turns.set(name, turn + 1)
    const addresses = lists[turn % lists.length]!
    const header = Buffer.from(query.subarray(0, 12))
    header.writeUInt16BE(0x8580, 2)
    header.writeUInt16BE(addresses.length, 6)
    header.writeUInt32BE(0, 8)
    const records = addresses.map((address) => Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split('.').map(Number)]))
    socket.send(Buffer.concat([header, query.subarray(12, end + 5), ...records]), peer.port, peer.address)
  })
  socket.bind(53, '127.0.0.53')
  await once(socket, 'listening')
}

let reached: string[] = []
const canary = createServer(({ url = '', socket }, response) => {
  reached.push(socket.localAddress?.replace('::ffff:', '') ?? '')
  const index = /^\/redirect\/(\d+)$/.exec(url)?.[1]
  const redirect = redirects[Number(index)]
  response.writeHead(redirect?.status ?? 200, { connection: 'close', ...(redirect && { location: redirect.target }) })
  response.end('the canary')
})
canary.listen(port, '::')
await Promise.all([once(canary, 'listening'), serveNames()])

const outward = await openOutward({ services: [], web: { ports: [80, port] } })
const { signal } = new AbortController()

/** Every address that was reached, and whatever came back that is neither an answer nor a sentence for the model. */
async function ask(addresses: readonly string[], get: (address: string) => Promise<unknown>) {
  reached = []
  const odd: string[] = []
  for (const address of addresses) {
    await get(address).catch((error: unknown) => {
      if (!(error instanceof ToolError)) odd.push(`${address}: ${error}`)
    })
  }
  return { reached, odd }
}
const guarded = (address: string) => outward.fetch(address, { timeoutMs: 2000 }, signal)
const relay = outward.relay()
/** What a program of a rollout asks for through its proxy. */
const relayed = async (address: string) => {
  if (!URL.canParse(address)) throw new ToolError('That is no address.')
  return await relay.send({ method: 'GET', url: new URL(address), headers: {} }, signal)
}
const unguarded = (address: string) => fetch(address, { signal: AbortSignal.timeout(2000) })

const findings = {
  vectors: vectors.length,
  control: (await ask(vectors, unguarded)).reached.filter((address) => address !== publicAddress).length,
  guarded: await ask(vectors, guarded),
  rebinding: await ask(
    Array.from({ length: 20 }, () => `http://rebind.test:${port}/`),
    guarded,
  ),
  relayed: await ask([...vectors, ...Array.from({ length: 20 }, () => `http://rebind.test:${port}/`)], relayed),
  redirects: await ask(
    redirects.map((_, index) => `http://pub.test:${port}/redirect/${index}`),
    guarded,
  ),
}
console.log(JSON.stringify(findings))
await outward.close()
process.exit(0)
