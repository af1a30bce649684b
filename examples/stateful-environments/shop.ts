import { DatabaseSync } from 'node:sqlite'
import { Agent, defineState, tool } from 'aworld-train'
import { z } from 'zod'

/** A shop for each attempt: a database that holds the same at every beginning. */
export const shop = defineState({
  setup() {
    const database = new DatabaseSync(':memory:')
    database.exec(`CREATE TABLE stock (item TEXT, count INTEGER); INSERT INTO stock VALUES ('figs', 3), ('nuts', 5)`)
    return database
  },
  teardown: (database) => database.close(),
})

const take = tool({
  name: 'take',
  description: 'Takes some of an item out of the shop.',
  parameters: z.object({ item: z.string(), count: z.int().min(1) }),
  state: shop,
  execute({ item, count }, { state }) {
    const update = state.prepare('UPDATE stock SET count = count - ? WHERE item = ? AND count >= ?')
    if (update.run(count, item, count).changes === 0) throw new Error(`there are not ${count} ${item}`)
    return `took ${count} ${item}`
  },
})

const left = tool({
  name: 'left',
  description: 'Says how many of an item are left.',
  parameters: z.object({ item: z.string() }),
  state: shop,
  execute: ({ item }, { state }) => state.prepare('SELECT count FROM stock WHERE item = ?').get(item)?.['count'] ?? 0,
})

export const agent = new Agent({ name: 'shopper', systemPrompt: 'You do the shopping.', tools: [take, left] })
