import { existsSync, readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { displayPath, type RunListing } from '@aworld-train/core'
import { type RunReport, toTrainError } from '@aworld-train/protocol'
import { type RunManifest, readRun } from '@aworld-train/store'
import { comparedEvaluations } from './compared-evaluations.ts'
import { readJson, runStatus } from './run-status.ts'
import { createEvaluationTallies } from './tally.ts'

/** Rollouts of a split that the list reads: those of training, which are many more, are left out. */
const mostEvaluated = 100_000

/** The folders below `folder` that hold a run, in any order. */
export function runsBelow(folder: string): string[] {
  try {
    return readdirSync(folder)
      .map((name) => join(folder, name))
      .filter((path) => existsSync(join(path, 'manifest.json')))
  } catch {
    return []
  }
}

/** A run in few words: from its report where it has one, else from its steps and evaluations. A run that cannot be read says why. */
export function listRun(id: string, path: string): RunListing {
  const manifest = readJson<RunManifest>(path, 'manifest.json')
  const empty = {
    id,
    name: manifest?.name ?? basename(path),
    path: displayPath(path),
    createdAt: manifest?.createdAt ?? 0,
    status: runStatus(path).status,
  }
  const report = readJson<RunReport>(path, 'report.json')
  // A run that was resumed still has the report of the process before.
  if (report && empty.status !== 'running') {
    return {
      ...{ ...empty, problem: null, steps: report.curve.length, rewards: report.curve.map(({ reward }) => reward) },
      ...{ rollouts: report.counts.rollouts, before: report.before?.reward ?? null, after: report.after?.reward ?? null },
    }
  }
  try {
    const run = readRun(path)
    try {
      const steps = run.stepMetrics()
      const rewards = steps.flatMap(({ metrics }) => metrics['rewardMean'] ?? [])
      const rollouts = Object.values(run.statuses()).reduce((sum, count) => sum + count, 0)
      const evaluations = createEvaluationTallies()
      for (const split of Object.keys(run.splits()).filter((each) => each !== 'train'))
        for (const row of run.rolloutRows({ split, finishedAfter: 0, limit: mostEvaluated }).rows)
          evaluations.add({ ...row, reward: row.reward ?? 0 })
      const { before, after } = comparedEvaluations(evaluations.summaries())
      return {
        ...{ ...empty, problem: null, steps: steps.length, rewards, rollouts },
        ...{ before: before?.reward ?? null, after: after?.reward ?? null },
      }
    } finally {
      run.close()
    }
  } catch (error) {
    const { message } = toTrainError(error, 'STORE_FAILED')
    return { ...empty, problem: message, steps: 0, rewards: [], rollouts: 0, before: null, after: null }
  }
}
