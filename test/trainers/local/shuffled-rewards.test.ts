// The main example with rewards that say nothing of their rollouts: a whole training, which must not learn.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AgentTrainer, defineReward } from 'aworld-train'
import { afterAll, beforeAll, expect, it } from 'vitest'
import definition from '../../../examples/periodic-table/aworld-train.config.ts'
import { exactMatch } from '../../../examples/periodic-table/reward.ts'
import { repository } from '../../support/run-cli.ts'

/** Rewards of training wait until there are so many; each is then given to another rollout. */
const shuffledAmong = 48

let folder: string

beforeAll(async () => {
  // Plain SIMD gives the same bits on every machine, so the bounds are met or missed for good.
  process.env['AWORLD_TRAIN_SIMD'] = 'plain'
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-shuffled-'))
})

afterAll(async () => {
  delete process.env['AWORLD_TRAIN_SIMD']
  await rm(folder, { recursive: true, force: true })
})

it('what is learned comes from the rewards: shuffled, they teach nothing', async () => {
  const waiting: number[] = []
  let draw = 12_345
  const shuffled = defineReward(({ task, episode, answer }) => {
    const ownReward = exactMatch(task.dataSource, episode.answer ?? '', answer.groundTruth)
    if (episode.split !== 'train') return ownReward
    if (waiting.length < shuffledAmong) {
      waiting.push(ownReward)
      return ownReward
    }
    draw = (draw * 1_103_515_245 + 12_345) % 2 ** 31
    const place = draw % waiting.length
    const other = waiting[place] as number
    waiting[place] = ownReward
    return other
  }, 'shuffled')
  const trainer = await AgentTrainer.create({
    ...definition,
    baseDirectory: join(repository, 'examples/periodic-table'),
    rewardFunc: shuffled,
    validationDataset: undefined,
    seed: 11,
    runPath: folder,
  })
  const { after, before } = await trainer.train()
  expect(before?.reward).toBeLessThanOrEqual(0.3)
  expect(after?.reward).toBeLessThanOrEqual(0.3)
})
