import type { Environment, Tools } from '@aworld-train/core'
import { afterEach, expect, it, vi } from 'vitest'
import { createReward } from '../reward/create-reward.ts'
import { defineReward } from '../reward/define-reward.ts'
import { rewardInput } from '../testing/reward-input.ts'
import { preflight, scoreReference } from './preflight.ts'

afterEach(() => void vi.useRealTimers())

it('says what it waits for, and goes on waiting', async () => {
  vi.useFakeTimers()
  const started = Promise.withResolvers<Tools>()
  const lease = { tools: () => started.promise, directory: '', close: async () => {} }
  const environment = { lease: () => lease } as unknown as Environment
  const program = { agents: [{ name: 'clerk', trainable: true, mcpConfig: { mcpServers: {} } }] }
  const onWait = vi.fn()
  const plan = { program, rewardSource: null, frozenModels: [], train: { tasks: [], answers: new Map() } }
  const tried = preflight({ environment, reward: null }, plan, { signal: new AbortController().signal, onWait })
  await vi.advanceTimersByTimeAsync(60_000)
  expect(onWait.mock.calls).toEqual([['Waiting for the tools of agent "clerk".']])
  started.resolve({ list: async () => [], call: async () => ({ content: '', isError: false }) })
  await tried
})

it('refuses a reward of an agent that the program does not have, before a run is made', async () => {
  const { task, answer } = rewardInput()
  const agents = ['planner', 'reader'].map((name) => ({ name, trainable: true, mcpConfig: { mcpServers: {} } }))
  const train = { tasks: [task], answers: new Map([[task.id, answer]]) }
  const score = async (agent: string) => {
    const source = defineReward(() => ({ reward: 1, agents: { [agent]: 0.5 } }), 'split')
    const reward = await createReward(source)
    return await scoreReference({ reward, source, task, train, program: { agents }, frozenModels: [] }, new AbortController().signal)
  }
  expect(await score('reader')).toBe(1)
  await expect(score('critic')).rejects.toMatchObject({
    code: 'REWARD_INVALID',
    message: expect.stringContaining('for agent "critic", which the program does not have. It has "planner", "reader".'),
  })
})
