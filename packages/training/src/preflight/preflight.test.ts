import type { Environment, Tools } from '@aworld-train/core'
import { afterEach, expect, it, vi } from 'vitest'
import { preflight } from './preflight.ts'

afterEach(() => void vi.useRealTimers())

it('says what it waits for, and goes on waiting', async () => {
  vi.useFakeTimers()
  const started = Promise.withResolvers<Tools>()
  const lease = { tools: () => started.promise, directory: '', close: async () => {} }
  const environment = { lease: () => lease } as unknown as Environment
  const program = { agents: [{ name: 'clerk', trainable: true, mcpConfig: { mcpServers: {} } }] }
  const onWait = vi.fn()
  const plan = { program, rewardSource: null, train: { tasks: [], answers: new Map() } }
  const tried = preflight({ environment, reward: null }, plan, { signal: new AbortController().signal, onWait })
  await vi.advanceTimersByTimeAsync(60_000)
  expect(onWait.mock.calls).toEqual([['Waiting for the tools of agent "clerk".']])
  started.resolve({ list: async () => [], call: async () => ({ content: '', isError: false }) })
  await tried
})
