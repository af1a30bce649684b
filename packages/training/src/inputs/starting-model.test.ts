import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { requireReward } from './named-reward.ts'
import { findStartingModel, type StartingModelNames } from './starting-model.ts'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'starting model '))
  await mkdir(join(directory, 'model'))
  await mkdir(join(directory, 'org/empty'), { recursive: true })
  await writeFile(join(directory, 'model/config.json'), '{}')
})
afterAll(() => rm(directory, { recursive: true }))

const find = (names: Partial<StartingModelNames>) =>
  findStartingModel({ model: null, key: 'model.path', directory, warmUp: null, fromScratch: undefined, takesHubNames: true, ...names })

it('is a folder, a name on the Hub where one is taken, or what the warm-up makes', () => {
  const warmUp = './warm-up.ts#make'
  expect(find({ model: './model', warmUp })).toEqual({ model: join(directory, 'model'), warmUp })
  expect(find({ model: join(directory, 'model'), takesHubNames: false })).toEqual({ model: join(directory, 'model'), warmUp: null })
  expect(find({ model: 'org/model' })).toEqual({ model: 'org/model', warmUp: null })
  expect(find({ warmUp })).toEqual({ model: null, warmUp })
  expect(find({ model: './model', warmUp, fromScratch: true })).toEqual({ model: null, warmUp })
})

it.each<[string, Partial<StartingModelNames>, RegExp]>([
  ['nothing', {}, /There is no model to train; name a folder, or a model of the Hugging Face hub, in model\.path/],
  ['nothing, without the Hub', { takesHubNames: false }, /There is no model to train; name a folder in model\.path/],
  ['no warm-up to start from', { model: './model', fromScratch: true }, /no warm-up to start from; name one in model\.warmUp/],
  ['a folder that is not there', { model: './modell' }, /The model folder .*modell is not there; correct model\.path, or make one/],
  ['a folder without a model', { model: 'org/empty' }, /The model folder .*empty has no config\.json/],
  ['a name of the Hub where none is taken', { model: 'org/model', takesHubNames: false }, /The model folder .*org.model is not there/],
])('%s is refused', (_, names, message) => {
  expect(() => find(names)).toThrow(message)
})

it('without a reward the message names the keys that could have one', async () => {
  const names = { reward: undefined, baseDirectory: directory, path: null, name: null, configDirectory: directory }
  await expect(requireReward(names, 'local', { reward: 'reward.path', nativeReward: null })).rejects.toThrow(
    'There is no reward; pass rewardFunc, or name reward.path in the configuration.',
  )
  await expect(requireReward(names, 'verl', { reward: 'reward.path', nativeReward: 'reward.native' })).rejects.toThrow(
    'There is no reward; pass rewardFunc, name reward.path in the configuration, or set reward.native for the one of verl.',
  )
})
