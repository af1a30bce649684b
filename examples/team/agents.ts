import { Agent, tool } from 'aworld-train'
import { z } from 'zod'
import type { TeamTask } from './tasks.ts'

const open = tool({
  name: 'open',
  description: 'Opens the page of a city.',
  parameters: z.object({ city: z.string() }),
  execute: ({ city }, { task }) => (task.data as TeamTask['data']).pages[city] ?? 'There is no such page.',
})

const add = tool({
  name: 'add',
  description: 'Adds numbers.',
  parameters: z.object({ numbers: z.array(z.number()) }),
  execute: ({ numbers }) => String(numbers.reduce((sum, number) => sum + number, 0)),
})

export const reader = new Agent({
  name: 'reader',
  desc: 'Reads the page of a city.',
  systemPrompt: 'You read one page.',
  tools: [open],
  maxTurns: 3,
})

/** The lead may ask several readers at once: each of them is an invocation with a conversation of its own. */
export const lead = new Agent({
  name: 'lead',
  systemPrompt: 'You add what your readers find.',
  agents: [reader],
  tools: [add],
  maxTurns: 4,
})
