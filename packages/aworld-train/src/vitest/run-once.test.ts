import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Agent, Swarm } from '@aworld-train/agent'
import { expect, test } from 'vitest'
import { runOnce } from './run-once.ts'
import type { ScriptedAnswer } from './scripted-policy.ts'

const ask = (name: string, content: string) => ({ name, arguments: { content } })
const training = () => {
  const helper = new Agent({ name: 'helper', systemPrompt: 'Help.' })
  const reader = new Agent({ name: 'reader', systemPrompt: 'Read.', agents: [helper] })
  return { agent: new Agent({ name: 'planner', systemPrompt: 'Plan.', agents: [reader] }) }
}
const planner: ScriptedAnswer[] = [{ toolCalls: [ask('reader', 'one'), ask('reader', 'two'), ask('reader', 'three')] }, 'Done.']

test('each invocation takes its answers from the list of its agent, or from its own', async () => {
  const script = {
    planner,
    reader: ['Figs.'],
    'reader:planner.0.1': [{ toolCalls: [ask('helper', 'Which?')] }, 'Dates.'],
    helper: ['Those.'],
  }
  const episodes = await Promise.all([1, 2, 3].map(() => runOnce(training(), { task: 'Go.', script })))
  for (const { trajectories, stopReason, answer } of episodes) {
    expect([stopReason, answer]).toEqual(['completed', 'Done.'])
    const worked = trajectories.filter(({ turns }) => turns.length > 0)
    expect(Object.fromEntries(worked.map(({ id, turns }) => [id, turns.map(({ message }) => message.content || 'asks')]))).toEqual({
      planner: ['asks', 'Done.'],
      'reader:planner.0.0': ['Figs.'],
      'reader:planner.0.1': ['asks', 'Dates.'],
      'reader:planner.0.2': ['Figs.'],
      'helper:reader:planner.0.1.0.0': ['Those.'],
    })
  }
})

test('a call after the last answer, and one of an agent without a list, say whose it is', async () => {
  const short = { planner, reader: ['Figs.'], 'reader:planner.0.2': [] }
  expect((await runOnce(training(), { task: 'Go.', script: short })).error?.message).toContain(
    'The script has 0 answers for "reader:planner.0.2", and the invocation "reader:planner.0.2" called its model once more; add an answer',
  )
  expect((await runOnce(training(), { task: 'Go.', script: { planner } })).error?.message).toMatch(
    /The script has no answers for the invocation "reader:planner\.0\.\d"; give it a list under "reader", or under this id\./,
  )
})

test('a script for a stranger is refused', async () => {
  await expect(runOnce(training(), { task: 'Go.', script: { planner, raeder: ['Figs.'] } })).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining(
      'answers for "raeder", which is no agent of the program; its agents are "planner", "reader", "helper".',
    ),
  })
})

test('agents of several policies each ask their own', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'aworld-train-once-'))
  try {
    const shipped = fileURLToPath(new URL('../../../../examples/periodic-table/model', import.meta.url))
    const policies = Object.fromEntries(['lead', 'reader'].map((name) => [name, { path: join(folder, name) }]))
    for (const { path } of Object.values(policies)) cpSync(shipped, path, { recursive: true })
    const [first, second] = Object.keys(policies).map(
      (policy) => new Agent({ name: `the ${policy}`, maxTurns: 1, conf: { llmProvider: 'policy', llmModelName: policy } }),
    )
    const config = { policies, engine: { threads: 2 }, sampling: { maxTokens: 4 } }
    const { trajectories } = await runOnce({ agent: new Swarm(first!, second!), config }, { task: 'What is the symbol of iron?' })
    expect(trajectories.map(({ agent, policy, turns }) => [agent, policy, turns.length])).toEqual([
      ['the lead', 'lead', 1],
      ['the reader', 'reader', 1],
    ])
  } finally {
    rmSync(folder, { recursive: true })
  }
})
