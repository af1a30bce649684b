import { expect, it } from 'vitest'
import { hostile, writeRun } from '../packages/dashboard/src/testing/write-run.ts'
import { writeSwarm } from '../packages/dashboard/src/testing/write-swarm.ts'
import { runCli } from './support/run-cli.ts'

it('prints the invocations of a swarm as a tree with the turns of each', async () => {
  await using run = await writeRun({ isLive: true })
  const key = await writeSwarm(run.store)
  const { code, stdout, stderr } = await runCli(['replay', run.path, key, '--tokens'])
  expect(code, stderr).toBe(0)
  expect(stdout.split('\n').filter((line) => /\d turns?(,|$)/.test(line))).toEqual([
    'planner  2 turns',
    '  reader:planner.0.0  2 turns, asked for by planner, turn 0',
    '  reader:planner.0.1  2 turns, asked for by planner, turn 0',
    '    helper:reader:planner.0.1.0.0  1 turn, asked for by reader:planner.0.1, turn 0',
    '    helper:reader:planner.0.1.0.1  1 turn, asked for by reader:planner.0.1, turn 0',
    '  reader:planner.0.2  2 turns, asked for by planner, turn 0',
    'writer  1 turn, after planner',
    'planner:2  2 turns, after writer',
    '  reader:planner:2.0.0  1 turn, asked for by planner:2, turn 0',
    'writer:2  1 turn, after writer and planner:2',
  ])
  expect(stdout).toContain('      task    six for helper:reader:planner.0.1.0.0\n      policy  six, said by helper\n')
  expect(stdout).toMatch(/^ {2}reader:planner\.0\.1 turn 1: \d+ prompt \+ 20 sampled, continues 0, stop$/m)
  expect(stdout).toMatch(/^reward {2}1$/m)
})

it('prints no control character of the name of an agent', async () => {
  await using run = await writeRun({ isLive: true })
  const key = await writeSwarm(run.store, { text: hostile })
  const { code, stdout, stderr } = await runCli(['replay', run.path, key, '--tokens'])
  expect(code, stderr).toBe(0)
  expect(stdout).not.toMatch(/[^\P{Cc}\n]|\u202e/u)
})
