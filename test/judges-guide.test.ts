import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { stripTypeScriptTypes } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Reward, scoringContext } from '@aworld-train/core'
import { createReward, parseLocalConfig } from '@aworld-train/training'
import * as aworldTrain from 'aworld-train'
import { expect, it, onTestFinished } from 'vitest'
import { parse } from 'yaml'
import { rewardInput } from '../packages/training/src/testing/reward-input.ts'
import { repository } from './support/run-cli.ts'

const text = await readFile(join(repository, 'docs/3.guides/judges.md'), 'utf8')

it('has a configuration that is read', () => {
  const [, yaml] = /```yaml\n([\s\S]*?)```/.exec(text)!
  const { config } = parseLocalConfig(parse(yaml!))
  expect([config.reward.maxCost, config.models['judge']?.apiKeyEnv]).toEqual([0.01, 'JUDGE_KEY'])
})

it('has rewards that score', async () => {
  const blocks = [...text.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code]) => code!.replace(/^import .*$/gm, '').replace(/^export /gm, ''))
  const names = [...text.matchAll(/^export const (\w+)/gm)].map(([, name]) => name)
  const code = stripTypeScriptTypes(blocks.join('\n'))
  const page = new Function(...Object.keys(aworldTrain), `${code}; return { ${names} }`)(...Object.values(aworldTrain))

  let content = ''
  const server = createServer((_, response) => response.end(JSON.stringify({ choices: [{ message: { content } }] })))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const judge = { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, apiKey: 'k', model: 'm' }
  const context = scoringContext(new AbortController().signal, { judge })
  const input = rewardInput()
  const episodes = ['gold', 'lead'].map((answer) => ({ ...input.episode, answer }))
  const group = { ...input, episodes, group: 'g', seed: 1 }
  const using = async <T>(name: string, says: string, work: (reward: Reward) => Promise<T>) => {
    content = says
    return await work(await createReward(page[name]))
  }
  expect(await using('rubric', '{"scores": {"correct": 10, "brief": 0}}', (each) => each.score(input, context))).toMatchObject({
    reward: 0.75,
  })
  expect(await using('polite', 'Yes', (each) => each.score(input, context))).toMatchObject({ reward: 1 })
  expect(await using('rank', '{"scores": {"1": 1, "2": 1}}', (each) => each.scoreGroup!(group, context))).toEqual([1, 1])
  expect(await using('shortest', '', (each) => each.scoreGroup!(group, context))).toEqual([1, 0])
})

it.each(['trl', 'verl', 'areal', 'swift'])('%s, which asks row by row, refuses a reward of groups by name', async (trainEngineName) => {
  const folder = await mkdtemp(join(tmpdir(), 'aworld-train-groups-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const created = aworldTrain.AgentTrainer.create({
    agent: new aworldTrain.Agent({ name: 'a' }),
    trainDataset: [{ id: 'a', prompt: 'Is 4 even?', answer: 'yes' }],
    rewardFunc: aworldTrain.rankReward({ judge: 'judge' }),
    trainEngineName,
    runPath: folder,
    baseDirectory: folder,
    onEvent() {},
  })
  await expect(created).rejects.toThrow(
    new RegExp(`Reward "rank" compares the rollouts of a group, and ${trainEngineName} asks for .*rubricReward`, 's'),
  )
})
