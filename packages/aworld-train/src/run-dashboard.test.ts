import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Agent } from '@aworld-train/agent'
import type { RunEvent } from '@aworld-train/core'
import { createHttpRuns } from '@aworld-train/dashboard'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { AgentTrainer } from './agent-trainer.ts'
import type { AgentTrainerOptions } from './agent-trainer-options.ts'

let runPath: string
beforeEach(() => {
  runPath = mkdtempSync(join(tmpdir(), 'aworld-train watched '))
})
afterEach(() => rmSync(runPath, { recursive: true, force: true, maxRetries: 3 }))

const options = (more: Partial<AgentTrainerOptions>): AgentTrainerOptions => ({
  agent: new Agent({ name: 'chemist', maxTurns: 1 }),
  trainDataset: [{ id: 'a', prompt: 'What is the symbol of gold?', answer: 'Au' }],
  rewardFunc: (_source, solution) => solution.length,
  config: {
    model: { path: fileURLToPath(new URL('../../../examples/periodic-table/model', import.meta.url)) },
    engine: { threads: 1, simd: 'plain' },
    training: { steps: 1, promptsPerStep: 1, samplesPerPrompt: 2 },
    sampling: { maxTokens: 4 },
  },
  runPath,
  trainEngineName: 'local',
  onEvent: () => {},
  ...more,
})

it('shows the run while it trains, at the address that is handed over, and ends with it', async () => {
  const url = Promise.withResolvers<string>()
  const reward = Promise.withResolvers<void>()
  const training = new AgentTrainer(
    // The reward waits for the reader, so that the run is alive during the reading.
    options({ dashboard: { onUrl: url.resolve }, rewardFunc: async (_source, solution) => reward.promise.then(() => solution.length) }),
  ).train()
  const { origin, searchParams, hash } = new URL(await Promise.race([url.promise, training.then(() => 'http://the.training.ended')]))
  const runs = createHttpRuns(origin, searchParams.get('token')!)
  const summary = await runs.run(decodeURIComponent(hash.slice(2))).summary()
  reward.resolve()
  const { path } = await training
  expect(summary).toMatchObject({ name: 'chemist', status: 'running' })
  expect(decodeURIComponent(hash.slice(2))).toBe(basename(path))
  await expect(fetch(origin)).rejects.toThrow('fetch failed')
})

it('trains without it where its port is in use, and says so', async () => {
  const taken = createServer().listen(0, '127.0.0.1')
  await new Promise((settle) => taken.once('listening', settle))
  const { port } = taken.address() as AddressInfo
  const events: RunEvent[] = []
  const report = await new AgentTrainer(options({ dashboard: { port }, onEvent: (event) => events.push(event) })).train()
  taken.close()
  expect(report.status).toBe('finished')
  const warnings = events.flatMap((event) =>
    event.type === 'warning-raised' && event.code === 'GATEWAY_PORT_IN_USE' ? [event.message] : [],
  )
  expect(warnings).toEqual([expect.stringContaining(`${port}`)])
})

it.each([{ port: 70_000 }, { port: 1.5 }, { ports: 1 }, 'on'])('refuses %o', (dashboard) => {
  expect(() => new AgentTrainer(options({ dashboard } as object))).toThrow(/"dashboard" is true, false or \{ port, onUrl \}/)
})
