import { readFileSync } from 'node:fs'
import { Agent, tool } from 'aworld-train'
import { z } from 'zod'

/** The items of each city. The agent can only look them up with its tool. */
export const stock: Record<string, Record<string, number>> = JSON.parse(readFileSync(new URL('./data/stock.json', import.meta.url), 'utf8'))

export const lookUp = tool({
  name: 'stock',
  description: 'Says how many of an item are in a city.',
  parameters: z.object({ item: z.string(), city: z.string() }),
  execute: ({ item, city }) => stock[city]?.[item] ?? 'not found',
})

/** The agent in training: without an address of its own it asks the policy. */
export const agent = new Agent({
  name: 'storekeeper',
  systemPrompt: 'You know what is in stock.',
  tools: [lookUp],
})
