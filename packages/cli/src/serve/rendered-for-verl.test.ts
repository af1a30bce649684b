import { planVerl, readVerlConfig, renderRunFiles } from '@aworld-train/trainer-verl'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { readWithExcerpt } from '../../../trainer-verl/src/testing/excerpt-of-verl.ts'
import { parseServeConfig } from './read-serve-config.ts'

it('serves the file that a run directory of verl has', async () => {
  const source = {
    'actor_rollout_ref.model.path': 'Qwen/Qwen3-4B',
    'custom_reward_function.path': './reward.ts',
    rows: 'last',
    incompleteEpisodes: 'exclude',
    reward: { input: 'full-response', timeoutMs: 5_000 },
    concurrency: 12,
    sampling: { maxTokens: 256 },
    limits: { maxTurns: 8, maxCost: 2 },
    models: { judge: { baseUrl: 'http://127.0.0.1:1/v1', model: 'judge', apiKeyEnv: 'JUDGE_KEY' } },
  }
  const config = await readVerlConfig(source, { verl: readWithExcerpt })
  const run = {
    path: '/runs/gaia',
    name: 'gaia',
    agent: { name: 'gaia', module: '/project/agent.ts#agent', directory: '/project', source: null },
    train: { path: '/runs/gaia/train_data.parquet', rows: 64 },
    test: null,
    reward: { path: '/project/reward.ts', name: null },
    bridgeDirectory: '/bridge',
  }
  const text = renderRunFiles(await planVerl(config, run)).get('serve.yaml')
  expect(text).toBeDefined()
  const served = parseServeConfig(parse(text!), 'serve.yaml')
  expect(served.models).toMatchObject({
    'Qwen/Qwen3-4B': { kind: 'channel', path: null, rows: 'last', incompleteEpisodes: 'exclude', maxCompletionTokens: 256 },
    judge: { kind: 'frozen', apiKeyEnv: 'JUDGE_KEY' },
  })
  expect(served.rollouts).toMatchObject({
    agent: '/project/agent.ts#agent',
    reward: '/project/reward.ts',
    rewardSettings: { input: 'full-response', timeoutMs: 5_000, memoryMb: 256 },
    concurrency: 12,
    budget: { maxTurns: 8, maxCost: 2 },
    token: { env: 'AWORLD_TRAIN_CHANNEL_TOKEN' },
  })
})
