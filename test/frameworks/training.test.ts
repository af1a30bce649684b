import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { AgentTrainer } from 'aworld-train'
import { expect, inject, onTestFinished, test } from 'vitest'
import definition from '../../examples/any-agent/aworld-train.config.ts'
import { frameworks } from './frameworks.ts'

const baseDirectory = fileURLToPath(new URL('../../examples/any-agent', import.meta.url))
const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length

/** One client in TypeScript and the one in Python. */
const quick = ['ai-sdk', 'openai-python']

for (const framework of frameworks) {
  const tags = quick.includes(framework.name) ? ['quick'] : []
  test(`${framework.name}: an agent of random weights learns to look things up in 20 steps`, { tags }, async () => {
    const runPath = await mkdtemp(join(tmpdir(), 'any-agent-'))
    onTestFinished(() => rm(runPath, { recursive: true, force: true }))
    const agent = await framework.load({ stream: false, python: inject('python') })
    const trainer = await AgentTrainer.create({ ...definition, baseDirectory, agent, runPath, fresh: true })
    const report = await trainer.train()

    const rewards = report.curve.map(({ reward }) => reward)
    expect(rewards).toHaveLength(20)
    const gain = mean(rewards.slice(-5)) - mean(rewards.slice(0, 5))
    console.log(
      `${framework.name}: +${gain.toFixed(2)} in ${(report.times.wallMs / 1000).toFixed(1)} s, ${report.counts.modelCalls.gateway} calls`,
    )
    expect(gain).toBeGreaterThanOrEqual(0.2)
    expect(report.ledger).toMatchObject({ unexplained: 0 })
    expect(report.counts.episodesByStopReason['failed'] ?? 0).toBe(0)
    // Tool turns were trained, and each went on from the tokens sampled before it.
    expect(report.tokenReport?.continuations).toBeGreaterThan(100)
    expect(report.tokenReport?.branches).toEqual({})
  })
}
