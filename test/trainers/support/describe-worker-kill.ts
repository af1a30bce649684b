import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunEvent, RunReport } from '@aworld-train/core'
import { readRun } from '@aworld-train/store'
import { AgentTrainer } from 'aworld-train'
import { expect, it } from 'vitest'
import definition from '../../../examples/periodic-table/aworld-train.config.ts'
import { repository } from '../../support/run-cli.ts'
import { workersOf } from './train-with-kills.ts'

export interface WorkerKillOptions {
  /** The interpreter of the trainer's environment. */
  readonly python: () => Promise<string>
  readonly steps: number
}

const workerNum = 4

/** The main example under the real trainer, its agents in four processes, one of which is killed in the midst of its rollouts. */
export function describeWorkerKill(name: string, { python, steps }: WorkerKillOptions): void {
  it(`${name} trains every rollout of the main example once when one of the processes of its agents is killed`, async () => {
    process.env['AWORLD_TRAIN_PYTHON'] = await python()
    const folder = await mkdtemp(join(tmpdir(), `aworld train ${name}-`))
    try {
      const baseDirectory = join(repository, 'examples', 'periodic-table')
      const testTasks = (await readFile(join(baseDirectory, 'data/test.jsonl'), 'utf8')).split('\n').filter(Boolean).slice(0, 8)
      const config = { ...(definition.config as object), executor: { workerNum, slots: 32, graceMs: 500 } }
      let begun = 0
      let killing: Promise<number> | undefined
      const warnings: string[] = []
      const report = await new AgentTrainer({
        ...definition,
        testDataset: testTasks.map((line) => JSON.parse(line)),
        config,
        trainEngineName: name,
        steps,
        baseDirectory,
        runPath: folder,
        onEvent(event: RunEvent) {
          if (event.type === 'warning-raised') warnings.push(event.message)
          if (event.type !== 'rollout-start' || event.split !== 'train') return
          // All have begun by then, and most are under way.
          if (++begun === 120) killing = killOne()
        },
      }).train<RunReport>()
      expect(await killing).toBeGreaterThan(0)
      expect(warnings.join('\n')).toMatch(/Worker "local-\d" ended by SIGKILL and is started again/)
      expect(report.status).toBe('finished')
      expect(report.counts.losses).toBeGreaterThan(0)
      expect(report.ledger).toMatchObject({ unexplained: 0 })
      const { trainedTwice } = JSON.parse(await readFile(join(report.path, 'ledger.json'), 'utf8'))
      expect(trainedTwice).toEqual([])
      const run = readRun(report.path)
      const trained = run.steps().flatMap(({ rollouts }) => rollouts)
      run.close()
      expect([trained.length, new Set(trained).size]).toEqual([steps * 16 * 8, steps * 16 * 8])
      console.log(`${name}: ${report.counts.rollouts} rollouts in ${report.counts.attempts} attempts, ${report.counts.losses} lost`)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }, 1_500_000)
}

async function killOne(): Promise<number> {
  const [victim] = await workersOf(process.pid)
  process.kill(victim!, 'SIGKILL')
  return victim!
}
