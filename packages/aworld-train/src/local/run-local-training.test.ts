import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Agent } from '@aworld-train/agent'
import { type RunEvent, RunReport } from '@aworld-train/core'
import { readRun } from '@aworld-train/store'
import { expect, it } from 'vitest'
import { AgentTrainer } from '../agent-trainer.ts'

it('a training that fails leaves a report of what it had done', async () => {
  const runPath = mkdtempSync(join(tmpdir(), 'aworld-train-failing-'))
  try {
    const trainer = await AgentTrainer.create({
      agent: new Agent({ name: 'chemist', maxTurns: 1 }),
      trainDataset: [{ id: 'a', prompt: 'What is the symbol of gold?', answer: 'Au' }],
      testDataset: [{ id: 'b', prompt: 'What is the symbol of tin?', answer: 'Sn' }],
      rewardFunc: (_source, _solution, groundTruth) => (groundTruth === 'Sn' ? 1 : Number.NaN),
      config: {
        model: { path: fileURLToPath(new URL('../../../../examples/periodic-table/model', import.meta.url)) },
        engine: { threads: 1, simd: 'plain' },
        training: { steps: 1, promptsPerStep: 1, samplesPerPrompt: 2 },
        sampling: { maxTokens: 4 },
        concurrency: 2,
      },
      runPath,
      trainEngineName: 'local',
    })
    await expect(trainer.train()).rejects.toMatchObject({ code: 'TRAINER_EMPTY_BATCH' })
    const report = RunReport.parse(JSON.parse(readFileSync(join(runPath, readdirSync(runPath)[0]!, 'report.json'), 'utf8')))
    expect(report).toMatchObject({ status: 'failed', before: { rollouts: 1 }, after: null, ledger: { unexplained: 0, trained: 0 } })
    expect(report.counts).toMatchObject({ rollouts: 4, episodesByStopReason: { failed: 2 } })
    const { wallMs, phasesMs } = report.times
    expect(Object.keys(phasesMs)).toEqual(expect.arrayContaining(['start', 'rollout', 'batch', 'record', 'other']))
    expect(Object.values(phasesMs).reduce((sum, ms) => sum + ms, 0)).toBeCloseTo(wallMs, 0)
  } finally {
    rmSync(runPath, { recursive: true, force: true, maxRetries: 3 })
  }
})

it('a training whose answers are mostly cut says so in its report, with the remedy', async () => {
  const runPath = mkdtempSync(join(tmpdir(), 'aworld-train-cut-'))
  try {
    const trainer = await AgentTrainer.create({
      agent: new Agent({ name: 'chemist', maxTurns: 1 }),
      trainDataset: [{ id: 'a', prompt: 'What is the symbol of gold?', answer: 'Au' }],
      rewardFunc: () => 1,
      config: {
        model: { path: fileURLToPath(new URL('../../../../examples/periodic-table/model', import.meta.url)) },
        engine: { threads: 1, simd: 'plain' },
        training: { steps: 2, promptsPerStep: 1, samplesPerPrompt: 2 },
        sampling: { maxTokens: 1 },
        concurrency: 2,
      },
      runPath,
      trainEngineName: 'local',
    })
    const { warnings, path } = await trainer.train()
    const run = readRun(path)
    const health = run.health(0).samples
    run.close()
    // The first sample is from before the weights were published, unless the last one replaced it within the same two seconds.
    const engine = { ready: true, reason: null, replicas: [] }
    const resting = { queued: 0, running: 0, calls: 0, retries: 0, channel: null }
    expect([health[0], health.at(-1)]).toMatchObject([
      { ...resting, engines: { model: { ...engine, weightVersion: expect.toBeOneOf([0, 1]) } } },
      { ...resting, engines: { model: { ...engine, weightVersion: 1 } } },
    ])
    expect(warnings).toEqual([
      expect.objectContaining({ code: 'BATCH_WITHOUT_GRADIENT', count: 2 }),
      {
        code: 'ROLLOUTS_TRUNCATED',
        count: 1,
        messages: [expect.stringMatching(/^2 of 2 rollouts of step 1 were cut by length.* Raise sampling\.maxTokens, which is 1; /)],
      },
    ])
  } finally {
    rmSync(runPath, { recursive: true, force: true, maxRetries: 3 })
  }
})

it('a training whose reward collapses says so while it goes on, in its events and its report, and once after a stop', async () => {
  const runPath = mkdtempSync(join(tmpdir(), 'aworld-train-collapse-'))
  try {
    let rewards = 0
    const stopped = new AbortController()
    const events: RunEvent[] = []
    const train = async (signal?: AbortSignal) => {
      const trainer = await AgentTrainer.create({
        agent: new Agent({ name: 'chemist', maxTurns: 1 }),
        trainDataset: [{ id: 'a', prompt: 'What is the symbol of gold?', answer: 'Au' }],
        rewardFunc: () => (++rewards <= 2 * 4 ? 1 : 0),
        config: {
          model: { path: fileURLToPath(new URL('../../../../examples/periodic-table/model', import.meta.url)) },
          engine: { threads: 1, simd: 'plain' },
          training: { steps: 14, promptsPerStep: 1, samplesPerPrompt: 2, checkpointEvery: 1 },
          sampling: { maxTokens: 1 },
          reward: { unfinished: 'score' },
          concurrency: 2,
        },
        runPath,
        trainEngineName: 'local',
        onEvent: (event) => {
          events.push(event)
          if (event.type === 'warning-raised' && event.code === 'POLICY_COLLAPSED') stopped.abort()
        },
      })
      return await trainer.train(signal)
    }
    expect((await train(stopped.signal)).status).toBe('stopped')
    const { warnings, status } = await train()
    expect(status).toBe('finished')
    const collapsed = events.flatMap((event) =>
      event.type === 'warning-raised' && event.code === 'POLICY_COLLAPSED' ? [event.message] : [],
    )
    expect(collapsed).toEqual([
      expect.stringMatching(
        /^At step 7 the policy .* all tasks from 1 in steps 1 to 3 to 0\. The best checkpoint is .*checkpoints\/step-00000\d\. Stop, /,
      ),
    ])
    expect(warnings).toContainEqual({ code: 'POLICY_COLLAPSED', count: 1, messages: collapsed })
  } finally {
    rmSync(runPath, { recursive: true, force: true, maxRetries: 3 })
  }
})
