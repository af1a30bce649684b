import { Agent, tool } from 'aworld-train'
import { z } from 'zod'
import type { SourceTask } from './tasks.ts'

const open = tool({
  name: 'open',
  description: 'Opens the page of a city.',
  parameters: z.object({ city: z.string() }),
  execute: ({ city }, { task }) => (task.data as SourceTask['data']).pages[city] ?? 'There is no such page.',
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
  conf: { llmProvider: 'policy', llmModelName: 'reader' },
})

/** The planner may ask several readers at once: each of them is an invocation with a conversation of its own. */
export const planner = new Agent({
  name: 'planner',
  systemPrompt: 'You add what your readers find.',
  agents: [reader],
  tools: [add],
  maxTurns: 4,
  conf: { llmProvider: 'policy', llmModelName: 'lead' },
})
