import { expect, test } from 'vitest'
import { quickFleet } from '../testing/fleet-calls.ts'
import { createToyVllm } from '../testing/vllm-server.ts'
import { fleetHealth } from './fleet-health.ts'
import { serverNames } from './server-names.ts'

test.each<[readonly string[], readonly string[]]>([
  [
    ['http://a:8000', 'http://b:8000/'],
    ['a:8000', 'b:8000'],
  ],
  [
    ['http://a:8000/one', 'http://a:8000/two/', 'http://b/one'],
    ['a:8000/one', 'a:8000/two', 'b'],
  ],
  [
    ['http://a', 'http://a/two'],
    ['a', 'a/two'],
  ],
  [
    ['http://key:secret@a/one?token=x', 'http://a/one', 'http://a/two'],
    ['a/one #1', 'a/one #2', 'a/two'],
  ],
])('%j are %j', (addresses, names) => {
  expect(serverNames(addresses)).toEqual(names)
})

test('two servers under one host have names of their own in the health of a fleet', async () => {
  const server = await createToyVllm()
  const fleet = await quickFleet([`${server.url}/one`, `${server.url}/two`])
  const { host } = new URL(server.url)
  expect(fleetHealth(fleet).replicas.map(({ name }) => name)).toEqual([`${host}/one`, `${host}/two`])
  await fleet.close()
  await server.close()
})
