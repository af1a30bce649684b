import { mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import type { Episode, RunReport } from '@aworld-train/core'
import 'aworld-train/vitest'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { repository } from './support/run-cli.ts'
import { runNode } from './support/run-npm.ts'
import { makeTinyModel } from './support/tiny-model.ts'

const training = `import { Agent, defineReward, defineTraining, tool } from 'aworld-train'
import { z } from 'zod'

const isEven = tool({
  name: 'is_even',
  description: 'Says whether a number is even.',
  parameters: z.object({ number: z.number() }),
  execute: ({ number }) => (number % 2 === 0 ? 'yes' : 'no'),
})

export const withTool = defineTraining({
  agent: new Agent({ name: 'checker', systemPrompt: 'Answer.', tools: [isEven] }),
  rewardFunc: (_source, solution, truth) => (solution.trim() === truth ? 1 : 0),
})

const rows = Array.from({ length: 12 }, (_, index) => ({ id: 'task-' + index, prompt: 'Is ' + 2 * index + ' even?', answer: 'yes' }))
export const bare = defineTraining({
  agent: new Agent({ name: 'tiny', systemPrompt: 'Answer.' }),
  trainDataset: rows,
  testDataset: rows,
  rewardFunc: withTool.rewardFunc,
  config: { model: { path: './yes' }, sampling: { maxTokens: 6 }, engine: { threads: 1, simd: 'plain' } },
})
`

const task = `{ prompt: 'Is 4 even?', answer: 'yes' }`
const call = `{ toolCalls: [{ name: 'is_even', arguments: { number: 4 } }] }`

const fixture = `import { evaluate, runOnce } from 'aworld-train/vitest'
import { expect, test } from 'vitest'
import { bare, withTool } from './training.ts'

const task = ${task}
const call = ${call}
const right = await runOnce(withTool, { task, script: [call, 'yes'] })
const wrong = await runOnce(withTool, { task, script: ['no'], sample: 1 })
const tooLong = await runOnce(withTool, { task, script: [call, call] })
const unscored = await runOnce({ agent: withTool.agent }, { task: 'Is 4 even?', script: ['yes'] })
const truncated = await runOnce({ ...withTool, config: { sampling: { topP: 0.9 } } }, { task, script: ['yes'] })
const sampled = await runOnce(bare, { task })
const yes = await evaluate(bare, { samples: 2 })
const no = await evaluate(bare, { model: './no', samples: 2 })

test('holds', () => {
  expect(right).toBeTrainable()
  expect(right).toEarn(1)
  expect(right).toEarn({ atLeast: 0.5 })
  expect(right).not.toEarn(0)
  expect(right).toCall('is_even')
  expect(right).toCall('is_even', { number: expect.any(Number) })
  expect(right).toStayWithin({ turns: 2, toolCalls: 1, tokens: 200, ms: 60_000 })
  expect(wrong).not.toCall('is_even')
  expect(wrong).toEarn(0)
  expect([right, wrong]).toBeTrainable()
  expect([right, right]).not.toBeTrainable()
  expect(unscored).not.toBeTrainable()
  expect(unscored).not.toEarn(0)
  expect(sampled).toBeTrainable()
  expect(sampled).toEarn(1)
  expect(sampled).toStayWithin({ turns: 1, tokens: 6 })
  expect(yes).toEarn({ atLeast: 0.9 })
  expect(yes).toStayWithin({ turns: 1 })
  expect(yes).toImproveOn(no)
  expect(yes).toImproveOn(JSON.parse(JSON.stringify({ ...no, episodes: undefined })))
  expect(no).not.toImproveOn(yes)
  expect(yes).not.toImproveOn(yes)
})

test('trainable: not scored', () => expect(unscored).toBeTrainable())
test('trainable: failed', () => expect(tooLong).toBeTrainable())
test('trainable: truncated sampling', () => expect(truncated).toBeTrainable())
test('trainable: a group of equal rewards', () => expect([right, right]).toBeTrainable())
test('trainable: a bad logprob', () => {
  const episode = structuredClone(right)
  episode.trajectories[0].turns[1].rolloutLogprobs[1] = Number.NaN
  expect(episode).toBeTrainable()
})
test('not trainable', () => expect(right).not.toBeTrainable())
test('earn', () => expect(wrong).toEarn({ atLeast: 1 }))
test('not earn', () => expect(wrong).not.toEarn(0))
test('earn on average', () => expect(no).toEarn({ atLeast: 0.5 }))
test('call', () => expect(right).toCall('is_even', { number: 5, at: expect.any(String) }))
test('not call', () => expect(right).not.toCall('is_even'))
test('call: none', () => expect(wrong).toCall('is_even'))
test('stay within', () => expect(right).toStayWithin({ turns: 1, toolCalls: 0, tokens: 3 }))
test('not stay within', () => expect(right).not.toStayWithin({ turns: 2 }))
test('improve on', () => expect(no).toImproveOn(yes))
test('not improve on', () => expect(yes).not.toImproveOn(no))
test('improve on itself', () => expect(yes).toImproveOn(yes))
test('improve on other tasks', () => expect(yes).toImproveOn({ ...no, results: no.results.slice(2) }))
test('a subject that is none', () => expect('yes').not.toCall('is_even'))
test('a bound that is none', () => expect(right).toStayWithin({ truns: 2 } as never))
`

let folder: string
/** The first error of each test of the fixture, by its name; `null` where it passed. */
let errors: Map<string, string | null>

beforeAll(async () => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'aworld-train-matchers-')))
  symlinkSync(join(repository, 'node_modules'), join(folder, 'node_modules'))
  await Promise.all(['yes', 'no'].map((answer) => makeTinyModel(join(folder, answer), { says: [answer] })))
  const files = { 'package.json': '{ "type": "module" }\n', 'training.ts': training, 'fixture.test.ts': fixture }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  const vitest = join(repository, 'node_modules/vitest/vitest.mjs')
  const report = join(folder, 'report.json')
  const { output } = await runNode(
    [vitest, 'run', '--root', folder, '--config', join(repository, 'vitest.base.ts'), '--reporter=json', `--outputFile=${report}`],
    folder,
  )
  type Assertion = { readonly title: string; readonly failureMessages: readonly string[] }
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as { testResults: { assertionResults: Assertion[]; message: string }[] }
  const results = testResults[0]?.assertionResults ?? []
  if (results.length === 0) throw new Error(`${testResults[0]?.message}\n${output}`)
  errors = new Map(
    results.map(({ title, failureMessages }) => [
      title,
      (failureMessages[0] && stripVTControlCharacters(failureMessages[0]).replace(/\n {4}at .*/gs, '')) || null,
    ]),
  )
})

afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))

it('takes what it is about, by its types', () => {
  const compiled = (episode: Episode, report: RunReport) => {
    expect(episode).toEarn({ atLeast: 1 })
    expect(report.after!).toImproveOn(report.before!)
    // @ts-expect-error: a reward is a number.
    expect(episode).toEarn('one')
    // @ts-expect-error: there is no such bound.
    expect(episode).toStayWithin({ truns: 1 })
    // @ts-expect-error: an episode is no report.
    expect(report.after!).toImproveOn(episode)
  }
  expect(compiled).toHaveLength(2)
})

it('passes what is so', () => {
  expect(errors.get('holds')).toBe(null)
})

it('says what was expected, what was received, and where', () => {
  const failures = [...errors].filter(([name]) => name !== 'holds').map(([name, error]) => `${name}\n${error}`)
  expect(failures.join('\n\n')).toMatchInlineSnapshot(`
    "trainable: not scored
    Error: expect(received).toBeTrainable()

    Rollout "once/train-1-22e0ea/0" cannot be trained: not-scored (4 tokens).
    It has no reward; give the training a rewardFunc.

    trainable: failed
    Error: expect(received).toBeTrainable()

    Rollout "once/train-1-22e0ea/0" cannot be trained: failed-episode (146 tokens).
    The episode ended by failed: POLICY_FAILED: The policy refused the call with status 500: The script has 2 answers, and the agent called its model once more; add an answer, or make the agent stop.

    trainable: truncated sampling
    Error: expect(received).toBeTrainable()

    Rollout "once/train-1-22e0ea/0" cannot be trained: Turn 0 of agent "checker" in rollout "once/train-1-22e0ea/0" was sampled with top-p 0.9 and top-k 0; train with topP 1 and topK 0.

    trainable: a group of equal rewards
    Error: expect(received).toBeTrainable()

    Group "once/train-1-22e0ea" teaches nothing: zero-variance-group (rewards 1, 1).

    trainable: a bad logprob
    Error: expect(received).toBeTrainable()

    Rollout "once/train-1-22e0ea/0": token 1 (id 101) of turn 1 of agent "checker" has the logprob NaN, which is none.

    not trainable
    Error: expect(received).not.toBeTrainable()

    Expected: nothing to train
    Received: 77 sampled tokens that would be trained

    earn
    Error: expect(received).toEarn(expected)

    Expected: at least 1
    Received: 0
    Answer: "no"

    not earn
    Error: expect(received).not.toEarn(expected)

    Expected: not 0
    Received: 0
    Answer: "no"

    earn on average
    Error: expect(received).toEarn(expected)

    Expected: at least 0.5
    Received: 0 [0, 0.242]

    call
    Error: expect(received).toCall(expected)

    Expected: is_even({"at": Any<String>, "number": 5})
    Received:
      is_even({"number": 4}) in turn 0 of agent "checker"

    not call
    Error: expect(received).not.toCall(expected)

    Expected: no call of is_even()
    Received:
      is_even({"number": 4}) in turn 0 of agent "checker"

    call: none
    Error: expect(received).toCall(expected)

    Expected: is_even()
    Received: no tool call
    Answer: "no"

    stay within
    Error: expect(received).toStayWithin(expected)

    Expected: at most 1 turns
    Received: 2 turns in rollout "once/train-1-22e0ea/0"; turn 1 of agent "checker" went beyond
    Expected: at most 0 toolCalls
    Received: 1 toolCalls in rollout "once/train-1-22e0ea/0"; the first too many is is_even({"number": 4}) in turn 0 of agent "checker"
    Expected: at most 3 tokens
    Received: 77 tokens in rollout "once/train-1-22e0ea/0"; turn 0 of agent "checker" went beyond

    not stay within
    Error: expect(received).not.toStayWithin(expected)

    Expected: more than
      turns: 2
    Received: no episode takes more

    improve on
    Error: expect(received).toImproveOn(expected)

    Expected: a mean reward above 1 [0.758, 1] over 12 tasks
    Received: 0 [0, 0.242] over 12 tasks
    Difference: -1, 95 % interval [-1, -0.657], which lies below 0
    By task: better on 0, worse on 12, most of all "task-0" (1 to 0), equal on 0.

    not improve on
    Error: expect(received).not.toImproveOn(expected)

    Expected: a mean reward not above 0 [0, 0.242] over 12 tasks
    Received: 1 [0.758, 1] over 12 tasks
    Difference: +1, 95 % interval [0.657, 1]
    By task: better on 12, worse on 0, equal on 0.

    improve on itself
    Error: expect(received).toImproveOn(expected)

    Expected: a mean reward above 1 [0.758, 1] over 12 tasks
    Received: 1 [0.758, 1] over 12 tasks
    Difference: 0, 95 % interval [-0.242, 0.242], which holds 0
    By task: better on 0, worse on 0, equal on 12.

    improve on other tasks
    TypeError: toImproveOn compares reports of the same tasks; task "task-0" is in one of them alone.

    a subject that is none
    TypeError: toCall is about an episode of runOnce; it received yes.

    a bound that is none
    TypeError: toStayWithin takes numbers for turns, tokens, toolCalls, ms; "truns" is none of them."
  `)
})
