import { lookup } from 'node:dns'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Agent, request } from 'undici'
import { afterAll, beforeEach, expect, it } from 'vitest'
import { guardedConnector, type LookupAll } from './guarded-connector.ts'

let hits = 0
const canary = createServer((_, response) => {
  hits++
  response.end('reached')
})
await new Promise<void>((resolve) => canary.listen(0, '127.0.0.1', resolve))
const { port } = canary.address() as AddressInfo
afterAll(() => canary.close())
beforeEach(() => {
  hits = 0
})

/** A name server whose look-ups take the next of `answers` and begin again after the last. */
function answering(...answers: readonly (readonly string[])[]): LookupAll {
  let lookups = 0
  return (_host, _options, callback) => {
    const addresses = answers[lookups++ % answers.length]!
    callback(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    )
  }
}

async function ask(url: string, lookup: LookupAll): Promise<unknown> {
  const agent = new Agent({ connect: guardedConnector(lookup) })
  try {
    const { body } = await request(url, { dispatcher: agent, signal: AbortSignal.timeout(30_000) })
    return await body.text()
  } catch (error) {
    return (error as Error).name
  } finally {
    await agent.destroy()
  }
}

it.each([
  ['one private address', answering(['127.0.0.1'])],
  ['a public address before a private one', answering(['93.184.216.34', '127.0.0.1'])],
  ['a private address before a public one', answering(['::1', '93.184.216.34'])],
  ['an address of IPv4 within IPv6', answering(['::ffff:127.0.0.1'])],
  ['no address at all', answering([])],
])('does not connect to a name with %s', async (_, lookup) => {
  expect(await ask(`http://name.test:${port}/`, lookup)).toBe('AddressRefused')
  expect(hits).toBe(0)
})

it('judges a name again at each connection, so that one which changes its mind is refused', async () => {
  // Addresses without a route: the first look-up of each pair may try to connect, and gets nowhere.
  const lookup = answering(['100::1', '127.0.0.1'], ['127.0.0.1'])
  for (let again = 0; again < 4; again++) expect(await ask(`http://rebind.test:${port}/`, lookup)).toBe('AddressRefused')
  expect(hits).toBe(0)
})

it.each(['127.0.0.1', '[::ffff:127.0.0.1]', '2130706433', '0x7f.1', 'localhost'])('does not connect to %s', async (host) => {
  expect(await ask(`http://${host}:${port}/`, lookup)).toBe('AddressRefused')
  expect(hits).toBe(0)
})
