import type { LookupAddress } from 'node:dns'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import type { LookupAll } from './guarded-connector.ts'
import { openLiveOutward } from './live-outward.ts'
import type { OutwardService } from './outward-options.ts'

/** A name server that knows these names. */
const knowing =
  (...names: readonly string[]): LookupAll =>
  (host, _options, callback) => {
    const addresses: LookupAddress[] = names.includes(host) ? [{ address: '192.0.2.1', family: 4 }] : []
    callback(addresses.length > 0 ? null : Object.assign(new Error(`no ${host}`), { code: 'ENOTFOUND' }), addresses)
  }
const services: readonly OutwardService[] = ['wiki', 'archive'].map((name) => ({ name, baseUrl: `https://${name}.example/api` }))
const words = { label: 'the page', maxBytes: 1_000, timeoutMs: 10_000, method: 'GET', headers: {}, body: undefined } as const

it.each([
  ['a page, and others are found', null, ['wiki.example'], true, 'There is no host "gone.example"'],
  ['a page, without a network', null, [], false, 'this machine has no network now'],
  ['a service, and others are found', 'archive', ['wiki.example'], false, '"gone.example" was not found; try again'],
  ['a service, without a network', 'archive', [], false, 'this machine has no network now'],
] as const)('a name that is not found is for good only where it is wrong: %s', async (_, name, names, lasting, message) => {
  const gone = { name: 'archive', baseUrl: 'https://gone.example/' }
  const outward = openLiveOutward(name ? [services[0]!, gone] : services, {}, knowing(...names))
  const service = name ? gone : null
  const error = outward.request({ ...words, url: new URL('https://gone.example/a'), service }, new AbortController().signal)
  await expect(error).rejects.toMatchObject({ name: 'ToolError', lasting, message: expect.stringContaining(message) })
  await outward.close()
})

it('ends a request of a program whose answer comes too slowly, and frees the other side', async () => {
  const server = createServer((_, response) => {
    response.writeHead(200).flushHeaders()
    const timer = setInterval(() => response.write('x'), 5)
    response.once('close', () => clearInterval(timer))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const mirrors = { 'https://slow.test': `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
  const outward = openLiveOutward([], { mirrors })
  const pending = outward.relay({ ...words, timeoutMs: 200, url: new URL('https://slow.test/') }, new AbortController().signal)
  await expect(pending).rejects.toMatchObject({ end: 'late', lasting: false, message: expect.stringContaining('within 0.2 s') })
  await outward.close()
  server.close()
  await once(server, 'close')
})

it('answers tools while programs wait for pages that take all the memory of theirs', async () => {
  const begun = Promise.withResolvers<void>()
  const server = createServer(({ url }, response) => {
    if (url === '/quick') response.end('quick')
    else begun.resolve()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const mirrors = { 'https://pages.test': `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
  const outward = openLiveOutward([], { mirrors })
  const { signal } = new AbortController()
  const slow = outward.relay({ ...words, maxBytes: Number.MAX_SAFE_INTEGER, url: new URL('https://pages.test/slow') }, signal)
  const gone = expect(slow).rejects.toMatchObject({ end: 'failed' })
  await begun.promise
  const { response } = await outward.request({ ...words, url: new URL('https://pages.test/quick'), service: null }, signal)
  expect(String(response.bytes)).toBe('quick')
  server.closeAllConnections()
  await gone
  await outward.close()
  server.close()
})
