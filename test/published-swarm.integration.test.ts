import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chatMlTemplate, loadChatModel } from '@aworld-train/chat'
import { type RolloutRequest, toTrainingSamples } from '@aworld-train/core'
import { createEnvironment } from '@aworld-train/environment'
import { createGateway } from '@aworld-train/gateway'
import { createRolloutRunner } from '@aworld-train/rollout'
import { openRunStore } from '@aworld-train/store'
import { scriptedEngine, writeTinyModel } from '@aworld-train/testing'
import { createReward } from '@aworld-train/training'
import { gaiaRewardFunc, loadAgent } from 'aworld-train'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createScriptedServer, type SeenRequest } from '../packages/agent/src/scripted-server.test-support.ts'

const swarms = fileURLToPath(new URL('support/published-swarm.ts', import.meta.url))
const services = ['PLAN', 'EXE', 'SUM'] as const

let folder: string
let cleanup: AsyncDisposableStack
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-swarm-'))
  cleanup = new AsyncDisposableStack()
  cleanup.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }))
  cleanup.defer(() => void vi.unstubAllEnvs())
})
afterEach(() => cleanup.disposeAsync())

/** Three services on loopback that answer with their name and what they were asked, and the variables that lead to them. */
async function startServices(fail?: (typeof services)[number]) {
  const requests: Record<string, readonly SeenRequest[]> = {}
  for (const name of services) {
    const server = cleanup.use(
      await createScriptedServer(({ body }) =>
        name === fail
          ? { status: 401, error: { message: 'no such key' } }
          : { content: `${name.toLowerCase()}(${body.messages.at(-1)!['content']})` },
      ),
    )
    vi.stubEnv(`${name}_LLM_BASE_URL`, server.baseUrl)
    vi.stubEnv(`${name}_LLM_MODEL_NAME`, `model-of-${name.toLowerCase()}`)
    vi.stubEnv(`${name}_LLM_API_KEY`, `key-of-${name.toLowerCase()}`)
    requests[name] = server.requests
  }
  return requests
}

/** Rollouts of the agents that an agent.yaml names, one sample each, over a policy that says `<answer>79</answer>`. */
async function runSwarm(loop: string, samples: number) {
  await writeFile(join(folder, 'agent.yaml'), `- name: swarm\n  _target_: ${swarms}#${loop}\n`)
  const { program } = await loadAgent('./agent.yaml', folder)
  const model = await writeTinyModel({ directory: join(folder, 'model'), template: chatMlTemplate })
  const chat = await loadChatModel({ directory: model.directory, stopTokenIds: model.stopTokenIds })
  const tokenIds = [...chat.encode('<answer>79</answer>'), ...model.stopTokenIds]
  const engine = scriptedEngine({ model, script: () => ({ tokenIds }) })
  const close = (each: { close(): Promise<void> }) => each.close()
  cleanup.adopt(engine, close)
  const gateway = cleanup.adopt(await createGateway({ models: { policy: { kind: 'token', engine, chat } }, seed: 1 }), close)
  const environment = cleanup.adopt(createEnvironment({ baseDirectory: folder }), close)
  const store = cleanup.adopt(await openRunStore({ path: join(folder, 'run') }), close)
  const reward = cleanup.adopt(await createReward(gaiaRewardFunc), close)
  const runner = cleanup.adopt(
    createRolloutRunner({
      program,
      gateway,
      environment,
      reward,
      store,
      answerKey: (taskId) => ({ version: 1, taskId, groundTruth: '79' }),
      concurrency: 4,
    }),
    close,
  )
  const requests = Array.from(
    { length: samples },
    (_, sample): RolloutRequest => ({
      version: 1,
      key: `swarm/${sample}`,
      task: { version: 1, id: 'gold', hash: 'h', input: 'Gold?', data: {}, dataSource: 'test', extraInfo: {} },
      group: 'gold',
      sample,
      split: 'train',
      policy: 'policy',
      sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 64, stop: [], seed: 0 },
      limits: {},
    }),
  )
  return { program, tokenIds, episodes: await runner.runAll(requests, AbortSignal.timeout(120_000)) }
}

it.each([
  ['SwarmLoop', ['agent_to_be_train', 'plan_agent', 'exe_agent', 'sum_agent']],
  ['NamelessSwarmLoop', ['agent-1', 'agent-2', 'agent-3', 'agent-4']],
])('%s: one agent is trained, three with services of their own are frozen', async (loop, names) => {
  const requests = await startServices()
  const { program, tokenIds, episodes } = await runSwarm(loop, 3)
  expect(program.agents.map(({ name, trainable }) => [name, trainable])).toEqual(names.map((name, index) => [name, index === 0]))

  for (const episode of episodes) {
    expect(episode).toMatchObject({ stopReason: 'completed', answer: 'sum(exe(plan(<answer>79</answer>)))', reward: 1 })
    expect(episode.trajectories.map(({ id, startedBy }) => [id, startedBy.map(({ trajectory }) => trajectory)])).toEqual(
      names.map((name, index) => [name, index === 0 ? [] : [names[index - 1]]]),
    )
    const { samples, sampled } = toTrainingSamples(episode)
    expect(samples.map(({ agent }) => agent)).toEqual([names[0]])
    const trained = samples[0]!.tokenIds.filter((_, index) => samples[0]!.lossMask[index] === 1)
    expect([...trained]).toEqual(tokenIds)
    expect(sampled).toBe(tokenIds.length)
  }
  const inputs = { PLAN: '<answer>79</answer>', EXE: 'plan(<answer>79</answer>)', SUM: 'exe(plan(<answer>79</answer>))' }
  for (const name of services) {
    expect(requests[name]).toHaveLength(3)
    for (const { headers, body } of requests[name]!) {
      expect(headers.authorization).toBe(`Bearer key-of-${name.toLowerCase()}`)
      expect(body.model).toBe(`model-of-${name.toLowerCase()}`)
      expect(body.messages.at(-1)).toMatchObject({ role: 'user', content: inputs[name] })
    }
  }
})

it.each([
  ['SwarmLoop', 'plan_agent'],
  ['NamelessSwarmLoop', 'agent-2'],
])('%s: an agent is not trained because the variables of its service are missing', async (loop, name) => {
  await startServices()
  for (const key of ['BASE_URL', 'MODEL_NAME', 'API_KEY']) vi.stubEnv(`PLAN_LLM_${key}`, undefined)
  await expect(runSwarm(loop, 1)).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining(`Agent "${name}" has no address and would be trained, but its AgentConfig has an empty llmBaseUrl`),
  })
})

it('a frozen agent whose service refuses is a failure with a reason, and the tokens so far are kept', async () => {
  await startServices('EXE')
  const { episodes, tokenIds } = await runSwarm('SwarmLoop', 1)
  const [episode] = episodes
  expect(episode).toMatchObject({ reward: null, error: { message: expect.stringMatching(/401|no such key/) } })
  expect(toTrainingSamples(episode!).sampled).toBe(tokenIds.length)
})
