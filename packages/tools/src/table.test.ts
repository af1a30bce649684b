import { expect, it } from 'vitest'
import { createOffer } from './host/offered-tools.ts'
import { serverAliases, toolServers } from './table.ts'

it('every tool has a name of its own, which model APIs take, and arguments in an object', () => {
  const listings = createOffer(toolServers, serverAliases)
    .tools(undefined)
    .map(({ listing }) => listing)
  expect(new Set(listings.map(({ name }) => name)).size).toBe(listings.length)
  for (const { name, inputSchema, outputSchema } of listings)
    expect([name, inputSchema.type, outputSchema?.type]).toEqual([expect.stringMatching(/^[\w-]{1,64}$/), 'object', 'object'])
})
