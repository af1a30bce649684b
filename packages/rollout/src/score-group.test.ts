import { type Episode, type GroupInput, type Reward, TrainError } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { rolloutRequest } from './testing/rollout-fixtures.ts'
import { askOnce, type RunnerSetup, setUpRunner } from './testing/set-up-runner.ts'

const never = new AbortController().signal

/** A reward of groups that gives each episode the length of its answer. */
function lengths(
  score: (input: GroupInput) => readonly (number | null)[] = ({ episodes }) => episodes.map(({ answer }) => answer!.length),
) {
  const inputs: GroupInput[] = []
  const reward: Reward = {
    name: 'lengths',
    kind: 'group',
    score: async () => Promise.reject(new Error('It was asked for one episode.')),
    async scoreGroup(input) {
      inputs.push(input)
      return score(input)
    },
    async close() {},
  }
  return { reward, inputs }
}

const requests = (count: number, group = 'g') =>
  Array.from({ length: count }, (_, sample) => ({ ...rolloutRequest(`${group}/${sample}`), group, sample }))

/** The policy says `a`, `aa`, … by the number of the sample. */
const say: RunnerSetup['say'] = (_, session) => ({ content: 'a'.repeat((session as { sample?: number }).sample! + 1) })
const rewardsOf = (episodes: readonly Episode[]) => episodes.map(({ reward }) => reward)

test('a group has its values once its last rollout has ended, and they are kept', async () => {
  const { reward, inputs } = lengths()
  const { runner, store } = setUpRunner({ agent: askOnce, say, reward, seed: 7 })
  const episodes = await runner.runAll([...requests(3, 'g'), ...requests(2, 'h')], never)
  expect(rewardsOf(episodes)).toEqual([1, 2, 3, 1, 2])
  expect(inputs.map(({ group, seed, episodes: members }) => [group, seed, members.length])).toEqual([
    ['g', 7, 3],
    ['h', 7, 2],
  ])
  expect(rewardsOf([...store.episodes()])).toEqual([1, 2, 3, 1, 2])

  const later = setUpRunner({ agent: askOnce, say, reward, store })
  expect(rewardsOf(await later.runner.runAll([...requests(3, 'g'), ...requests(2, 'h')], never))).toEqual([1, 2, 3, 1, 2])
  expect(inputs).toHaveLength(2)
})

test('failed members are left out, and a group of one has no value', async () => {
  const { reward, inputs } = lengths()
  const agent: RunnerSetup['agent'] = async (context, ask, task) => {
    if (context.rollout.endsWith('/1')) throw new Error('no')
    return await askOnce(context, ask, task)
  }
  const { runner } = setUpRunner({ agent, say, reward })
  expect(rewardsOf(await runner.runAll(requests(3), never))).toEqual([1, null, 3])
  expect(rewardsOf(await runner.runAll(requests(2, 'h'), never))).toEqual([null, null])
  expect(inputs).toHaveLength(1)
})

test.each<[string, () => readonly (number | null)[], string]>([
  [
    'throws',
    () => {
      throw new TrainError('JUDGE_INVALID', 'no verdict')
    },
    'no verdict',
  ],
  ['gives too few values', () => [1], 'returned 1 values, [1] for a group of 2 episodes'],
  ['gives NaN', () => [1, Number.NaN], 'returned 2 values, [1,null] for a group of 2'],
  ['gives a text', () => 'best' as never, 'returned a string for a group of 2'],
])('a reward that %s fails the members with its reason, and a later process asks nobody', async (_, score, message) => {
  const { reward, inputs } = lengths(score)
  const { runner, store } = setUpRunner({ agent: askOnce, say, reward })
  const episodes = await runner.runAll(requests(2), never)
  for (const episode of episodes)
    expect(episode).toMatchObject({
      stopReason: 'failed',
      reward: null,
      error: { boundary: 'reward', message: expect.stringContaining(message) },
    })
  await setUpRunner({ agent: askOnce, say, reward, store }).runner.runAll(requests(2), never)
  expect(inputs).toHaveLength(1)
})

test('a value may abstain', async () => {
  const { reward } = lengths(() => [null, 2])
  const { runner } = setUpRunner({ agent: askOnce, say, reward })
  expect((await runner.runAll(requests(2), never)).map(({ reward: value, stopReason }) => [value, stopReason])).toEqual([
    [null, 'completed'],
    [2, 'completed'],
  ])
})
