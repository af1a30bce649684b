import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Agent } from '@aworld-train/agent'
import type { RunEvent } from '@aworld-train/protocol'
import { expect, it, onTestFinished } from 'vitest'
import { AgentTrainer } from '../agent-trainer.ts'
import { createRunMetrics } from './run-metrics.ts'

const samplesOf = (text: string) => text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))

it('shows the last step and evaluations, and counts rollouts and warnings', async () => {
  const metrics = createRunMetrics({
    steps: () => [{ step: 3, weightVersion: 4, rollouts: [], metrics: { loss: 2, old: 1 }, checkpoint: null }],
  })
  expect(samplesOf(await metrics.registry.metrics())).toContain('aworld_train_run_step 3')
  const ended = { attempt: 0, taskId: 't', reward: 1, turns: 1, toolCalls: 0, sampledTokens: 5, durationMs: 1, at: 0 } as const
  const events: RunEvent[] = [
    ...['a', 'b', 'c'].map((rollout) => ({ type: 'rollout-start', at: 0, rollout, attempt: 0, split: 'train' }) as const),
    { ...ended, type: 'rollout-end', rollout: 'a', split: 'train', stopReason: 'completed' },
    { ...ended, type: 'rollout-end', rollout: 'b', split: 'train', stopReason: 'turn-limit' },
    { type: 'step-end', at: 0, step: 4, steps: 9, weightVersion: 5, metrics: { loss: 0.5 } },
    { type: 'evaluation-end', at: 0, name: 'before', step: 0, metrics: { reward: 0.25 } },
    { type: 'evaluation-end', at: 0, name: 'after', step: 4, metrics: { reward: 0.75 } },
    { type: 'evaluation-end', at: 0, name: 'validation-4', step: 4, metrics: { reward: 0.5 } },
    { type: 'warning-raised', at: 0, code: 'CONFIG_NOTE', message: 'A note that is in no label.' },
  ]
  for (const event of events) metrics.read(event)
  expect(samplesOf(await metrics.registry.metrics())).toEqual([
    'aworld_train_run_step 4',
    'aworld_train_run_weight_version 5',
    'aworld_train_run_step_metric{metric="loss"} 0.5',
    'aworld_train_run_evaluation_metric{evaluation="test",metric="reward"} 0.75',
    'aworld_train_run_evaluation_metric{evaluation="validation",metric="reward"} 0.5',
    'aworld_train_run_rollouts_running 1',
    'aworld_train_run_rollouts_total{split="train",stop_reason="completed"} 1',
    'aworld_train_run_rollouts_total{split="train",stop_reason="turn-limit"} 1',
    'aworld_train_run_sampled_tokens_total{split="train"} 10',
    'aworld_train_run_warnings_total{code="CONFIG_NOTE"} 1',
  ])
})

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
