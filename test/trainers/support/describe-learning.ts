import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunReport } from '@aworld-train/core'
import { AgentTrainer } from 'aworld-train'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import definition from '../../../examples/periodic-table/aworld-train.config.ts'
import { repository } from '../../support/run-cli.ts'

export interface LearningOptions {
  /** The interpreter of the trainer's environment. */
  readonly python: () => Promise<string>
  readonly steps: number
  /** Steps that the trainer itself counts for one of ours. */
  readonly updatesPerStep: number
}

/** The main example, unchanged but for its trainer, trained by the real one with all that it brings. */
export function describeLearning(name: string, { python, steps, updatesPerStep }: LearningOptions): void {
  describe(`${name} trains the main example`, () => {
    let folder: string
    let report: RunReport

    beforeAll(async () => {
      process.env['AWORLD_TRAIN_PYTHON'] = await python()
      folder = await mkdtemp(join(tmpdir(), `aworld train ${name}-`))
      const baseDirectory = join(repository, 'examples', 'periodic-table')
      report = await new AgentTrainer({ ...definition, trainEngineName: name, steps, baseDirectory, runPath: folder }).train()
      const phases = Object.entries(report.times.phasesMs).map(([phase, ms]) => `${phase} ${(ms / 1000).toFixed(1)} s`)
      const wall = (report.times.wallMs / 1000).toFixed(0)
      console.log(`${name}: ${report.before?.reward} to ${report.after?.reward}, ${wall} s: ${phases.join(', ')}`)
      console.log(report.curve.map(({ reward }) => reward.toFixed(2)).join(' '))
    }, 1_500_000)

    afterAll(async () => {
      await rm(folder, { recursive: true, force: true })
    })

    it('begins at 0.3 or below and reaches 0.75 or more on held-out tasks', () => {
      expect(report.before!.reward).toBeLessThanOrEqual(0.3)
      expect(report.after!.reward).toBeGreaterThanOrEqual(0.75)
      expect(report.after!.name).toBe(`test after step ${steps * updatesPerStep}`)
    })

    it('trains every token that was sampled once, or says why not, and agrees about its logprob', async () => {
      expect(report.ledger).toMatchObject({ unexplained: 0 })
      expect(report.ledger!.trained).toBeGreaterThan(10_000)
      const { trainedTwice, logprobDifference } = JSON.parse(await readFile(join(report.path, 'ledger.json'), 'utf8'))
      expect(trainedTwice).toEqual([])
      expect(logprobDifference.largest ?? logprobDifference.first).toBeLessThanOrEqual(1e-4)
    })
  })
}
