import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Agent } from '@aworld-train/agent'
import type { RunEvent } from '@aworld-train/core'
import { expect, it, onTestFinished } from 'vitest'
import { AgentTrainer } from '../agent-trainer.ts'

const samplesOf = (text: string) => text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))

const trainerOf = (runPath: string, port: number, onEvent: (event: RunEvent) => void) =>
  AgentTrainer.create({
    agent: new Agent({ name: 'chemist', maxTurns: 1 }),
    trainDataset: [{ id: 'a', prompt: 'What is the symbol of gold?', answer: 'Au' }],
    rewardFunc: (_source, solution) => solution.length,
    config: {
      model: { path: fileURLToPath(new URL('../../../../examples/periodic-table/model', import.meta.url)) },
      engine: { threads: 1, simd: 'plain' },
      training: { steps: 2, promptsPerStep: 1, samplesPerPrompt: 2 },
      sampling: { maxTokens: 4 },
      gateway: { port },
    },
    runPath,
    trainEngineName: 'local',
    onEvent,
  })

it('is read beside the metrics of the gateway while the training goes on', async () => {
  const runPath = mkdtempSync(join(tmpdir(), 'aworld-train-metrics-'))
  onTestFinished(() => rmSync(runPath, { recursive: true, force: true, maxRetries: 3 }))
  const read: Promise<string>[] = []
  let url = ''
  const trainer = await trainerOf(runPath, 0, (event) => {
    if (event.type === 'run-start') url = String(event.details['gateway'])
    if (event.type === 'step-end' && event.step === 1) read.push(fetch(`${url}/metrics`).then((response) => response.text()))
  })
  const { curve } = await trainer.train()
  const [text = ''] = await Promise.all(read)
  expect(samplesOf(text)).toContainEqual(expect.stringMatching(/^aworld_train_gateway_calls_total{.*outcome="ok".*} [2-4]$/))
  const step = Number(/^aworld_train_run_step (\d)$/m.exec(text)?.[1])
  expect(samplesOf(text)).toContain(`aworld_train_run_step_metric{metric="rewardMean"} ${curve[step - 1]!.reward}`)
})

it('has the port that the configuration names, or says that it is taken', async () => {
  const runPath = mkdtempSync(join(tmpdir(), 'aworld-train-metrics-'))
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    rmSync(runPath, { recursive: true, force: true, maxRetries: 3 })
  })
  const { port } = server.address() as AddressInfo
  const trainer = await trainerOf(runPath, port, () => {})
  await expect(trainer.train()).rejects.toMatchObject({ code: 'GATEWAY_PORT_IN_USE', message: expect.stringContaining(String(port)) })
})
