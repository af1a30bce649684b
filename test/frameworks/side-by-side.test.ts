// @module-tag quick
import { setTimeout as sleep } from 'node:timers/promises'
import { type AgentFunction, toAgentProgram } from '@aworld-train/agent'
import { type AgentProgram, type Episode, type RandomKey, type Turn, toTrainingSamples } from '@aworld-train/core'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { rollOut } from './roll-out.ts'
import { type Say, startPolicy } from './start-policy.ts'

const call = (name: string, args: object) => `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`

/** One of the elements, by chance as the key has it. */
const drawn = ({ task, sample, turn }: RandomKey) => {
  let hash = 7
  for (const character of `${task}|${sample}|${turn}`) hash = (Math.imul(hash, 31) + character.charCodeAt(0)) | 0
  return ['gold', 'iron', 'neon', 'tin'][(hash >>> 0) % 4]!
}

const isLead = (prompt: string) => prompt.includes('then answer.')
const answered = (prompt: string) => prompt.split('<tool_response>').length - 1

interface Team {
  readonly name: string
  /** Turns of each conversation, in the order of the rows. */
  readonly conversations: readonly number[]
  readonly say: Say
  /** The trajectories of an episode that have turns. */
  readonly ids: readonly string[]
  load(): Promise<{ readonly agent: AgentFunction | AgentProgram }>
}

/** Leads ask all at once; what the others look up is drawn, and so is what they say of it. */
const teams: readonly Team[] = [
  {
    name: 'ai-sdk',
    conversations: [2, 2, 2, 2],
    ids: ['agent'],
    load: () => import('../../examples/any-agent/team-ai-sdk.ts'),
    say(prompt, random) {
      if (isLead(prompt)) return answered(prompt) ? 'done' : ['gold', 'iron', 'tin'].map((name) => call('read', { name })).join('\n')
      return answered(prompt) ? `It is like ${drawn(random)}.` : call('lookup', { name: drawn(random) })
    },
  },
  {
    name: 'openai-agents',
    conversations: [2, 2, 2],
    ids: ['agent'],
    load: () => import('../../examples/any-agent/team-openai-agents.ts'),
    say(prompt, random) {
      if (isLead(prompt))
        return answered(prompt) ? 'done' : ['ask_metals', 'ask_gases'].map((name) => call(name, { input: 'Which is the best?' })).join('\n')
      return answered(prompt) ? `It is like ${drawn(random)}.` : call('lookup', { name: drawn(random) })
    },
  },
  {
    // Two of the questions are equal.
    name: 'langgraph',
    conversations: [2, 2, 2, 2],
    ids: ['lead', 'reader:0.0', 'reader:0.1', 'reader:0.2'],
    load: () => import('../../examples/any-agent/team-langgraph.ts'),
    say(prompt, random) {
      if (isLead(prompt)) return answered(prompt) ? 'done' : ['gold', 'gold', 'tin'].map((name) => call('read', { name })).join('\n')
      return answered(prompt) ? `It is like ${drawn(random)}.` : call('lookup', { name: drawn(random) })
    },
  },
  {
    name: 'handoff',
    conversations: [1, 2],
    ids: ['triage', 'metals'],
    load: () => import('../../examples/any-agent/team-handoff.ts'),
    say(prompt, random) {
      if (isLead(prompt)) return call('transfer_to_metals', {})
      return answered(prompt) > 1 ? 'done' : call('lookup', { name: drawn(random) })
    },
  },
]

/** An episode without times, its turns in an order of what they are. */
function withoutTime({ trajectories, timing: _, ...episode }: Episode): string {
  const named = trajectories.map(({ turns, ...trajectory }) => {
    const contentOf = ({ promptTokenIds, completionTokenIds }: Turn) => JSON.stringify([[...promptTokenIds], [...completionTokenIds]])
    const inOrder = turns.toSorted((one, other) => (contentOf(one) < contentOf(other) ? -1 : 1))
    const place = new Map(inOrder.map(({ index }, position) => [index, position]))
    return {
      ...trajectory,
      timing: null,
      turns: inOrder.map(({ timing: _, firstTokenAt: __, ...turn }, index) => ({
        ...turn,
        index,
        parent: turn.parent === null ? null : place.get(turn.parent),
      })),
    }
  })
  return JSON.stringify({ ...episode, trajectories: named }).replaceAll(/call_([0-9a-f]+)_\d+_/g, 'call_$1_')
}

const rowsOf = (episode: Episode) => JSON.stringify(toTrainingSamples(episode).samples.map(({ provenance: _, ...sample }) => sample))

beforeEach(() => {
  const send = globalThis.fetch
  vi.stubGlobal('fetch', async (...request: Parameters<typeof fetch>) => {
    await sleep(Math.random() * 20)
    return await send(...request)
  })
})
afterEach(() => void vi.unstubAllGlobals())

test.each(teams)('$name: agents at work at once, as they are, make one episode of one seed', async ({ load, say, conversations, ids }) => {
  const { agent } = await load()
  const program = typeof agent === 'function' ? toAgentProgram(agent) : agent
  const episodes: Episode[] = []
  for (let run = 0; run < 10; run++) {
    await using policy = await startPolicy(say)
    episodes.push(await rollOut(policy, program, 'What are the numbers of gold, iron and tin?'))
  }
  const [first] = episodes
  expect(first).toMatchObject({ stopReason: 'completed', answer: 'done' })
  const worked = first!.trajectories.filter((trajectory) => trajectory.turns.length > 0)
  expect(worked.map(({ id }) => id)).toEqual(ids)
  // A reader's place is the id of the tool call that asked.
  for (const { id, startedBy } of worked) if (id.startsWith('reader')) expect(startedBy).toMatchObject([{ trajectory: 'lead', turn: 0 }])
  expect(toTrainingSamples(first!).samples.map(({ provenance }) => provenance.turns.length)).toEqual(conversations)
  expect(new Set(episodes.map(withoutTime)).size).toBe(1)
  expect(new Set(episodes.map(rowsOf)).size).toBe(1)
})
