import { planVerl, readVerlConfig, renderRunFiles } from '@aworld-train/trainers/verl'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { readWithExcerpt } from '../../../trainers/src/verl/testing/excerpt-of-verl.ts'
import { parseServeConfig } from './read-serve-config.ts'

const run = {
  path: '/runs/gaia',
  name: 'gaia',
  agent: { name: 'gaia', module: '/project/agent.ts#agent', directory: '/project', source: null },
  train: { path: '/runs/gaia/train_data.parquet', rows: 64 },
  test: null,
  reward: { path: '/project/reward.ts', name: null },
  bridgeDirectory: '/bridge',
}

/** Text of `serve.yaml` in the run directory of a training with this configuration. */
async function serveYamlOf(source: object): Promise<string> {
  const config = await readVerlConfig(source as never, { verl: readWithExcerpt, baseDirectory: '/project' })
  return renderRunFiles(await planVerl(config, run)).get('serve.yaml')!
}

it('serves the file that a run directory of verl has', async () => {
  const source = {
    'actor_rollout_ref.model.path': 'Qwen/Qwen3-4B',
    'custom_reward_function.path': './reward.ts',
    rows: 'last',
    incompleteEpisodes: 'exclude',
    training: { ownReward: 0.25 },
    reward: { input: 'full-response', timeoutMs: 5_000 },
    concurrency: 12,
    sampling: { maxTokens: 256 },
    limits: { maxTurns: 8, maxCost: 2 },
    evaluation: { kindKey: 'kind' },
    models: { judge: { baseUrl: 'http://127.0.0.1:1/v1', model: 'judge', apiKeyEnv: 'JUDGE_KEY' } },
    gateway: { port: 9464, trainedCalls: 'all', tls: { cert: './cert.pem', key: '/keys/key.pem' } },
    executor: { cls: './launcher.ts#createLauncher', workerNum: 4, token: { file: './token' } },
  }
  const served = parseServeConfig(parse(await serveYamlOf(source)), 'serve.yaml')
  expect(served.models).toMatchObject({
    'Qwen/Qwen3-4B': {
      kind: 'channel',
      path: null,
      rows: 'last',
      incompleteEpisodes: 'exclude',
      ownReward: 0.25,
      maxCompletionTokens: 256,
    },
    judge: { kind: 'frozen', apiKeyEnv: 'JUDGE_KEY' },
  })
  expect(served.rollouts).toMatchObject({
    agent: '/project/agent.ts#agent',
    concurrency: 12,
    token: { env: 'AWORLD_TRAIN_CHANNEL_TOKEN' },
  })
  expect(served).toMatchObject({
    executor: { cls: '/project/launcher.ts#createLauncher', workerNum: 4, token: { file: '/project/token' } },
    reward: { path: '/project/reward.ts', name: null, input: 'full-response', timeoutMs: 5_000, memoryMb: 256 },
    limits: { maxTurns: 8, maxCost: 2, timeoutMs: 1_200_000 },
    evaluation: { kindKey: 'kind' },
  })
  expect(served.gateway).toMatchObject({ port: 9464, trainedCalls: 'all', tls: { cert: '/project/cert.pem', key: '/keys/key.pem' } })
})

it('keeps the words of a cluster whole, and says what workers elsewhere need', async () => {
  const resources = { 'spark.executor.memory': '2g', 'nvidia.com/gpu': 1 }
  const executor = { engineName: 'spark', resources, token: { env: 'WORKER_TOKEN' } }
  const gateway = { host: '10.0.0.5', insecure: true }
  const text = await serveYamlOf({ 'actor_rollout_ref.model.path': 'Qwen/Qwen3-4B', executor, gateway })
  expect(parseServeConfig(parse(text), 'serve.yaml').executor).toMatchObject({ engineName: 'spark', resources })
  expect(text).toMatch(/^# Workers on other machines connect to the port of rollouts/m)
})

it('refuses a choice of trained calls that only a program can make', async () => {
  const isTrained = () => true
  const text = await serveYamlOf({ 'actor_rollout_ref.model.path': 'Qwen/Qwen3-4B', gateway: { trainedCalls: isTrained } })
  expect(() => parseServeConfig(parse(text), 'serve.yaml')).toThrow(/gateway\.trainedCalls/)
})
