// The main example, trained by TRL on a GPU in float32, where sampler and trainer must agree.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AgentTrainer } from 'aworld-train'
import { expect, it, vi } from 'vitest'
import definition from '../../examples/periodic-table/aworld-train.config.ts'
import { repository } from '../support/run-cli.ts'
import { findTrlPython, requireOrSkip } from './what-is-missing.ts'

it('trains the main example with TRL: it learns, every token is accounted for, and logprobs agree', async ({ skip, onTestFinished }) => {
  const python = requireOrSkip(await findTrlPython(repository), skip)
  const runPath = await mkdtemp(join(tmpdir(), 'aworld-train-gpu-trl-'))
  onTestFinished(() => rm(runPath, { recursive: true, force: true }))
  vi.stubEnv('AWORLD_TRAIN_PYTHON', python.path)
  const config = definition.config as { readonly trl: object }
  const report = await new AgentTrainer({
    ...definition,
    baseDirectory: join(repository, 'examples/periodic-table'),
    trainEngineName: 'trl',
    steps: 20,
    runPath,
    config: { ...config, trl: { ...config.trl, bf16: false } },
  }).train()
  const { before, after, times, curve, ledger, path } = report
  const { logprobDifference } = JSON.parse(await readFile(join(path, 'ledger.json'), 'utf8'))
  const phases = Object.entries(times.phasesMs).map(([phase, ms]) => `${phase} ${(ms / 1000).toFixed(1)} s`)
  console.log(`held out ${before?.reward} to ${after?.reward}, ${(times.wallMs / 1000).toFixed(0)} s: ${phases.join(', ')}`)
  console.log(`rewards ${curve.map(({ reward }) => reward.toFixed(2)).join(' ')}; logprobs differ by ${JSON.stringify(logprobDifference)}`)
  expect(before!.reward).toBeLessThanOrEqual(0.3)
  expect(after!.reward).toBeGreaterThanOrEqual(0.75)
  expect(ledger).toMatchObject({ unexplained: 0 })
})
