import { existsSync, readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { AnyReport, displayPath, isUnscored, type RunListing, RunManifest, toTrainError } from '@aworld-train/core'
import { readRun } from '@aworld-train/store'
import { comparedEvaluations } from './compared-evaluations.ts'
import { readJson, runStatus } from './run-status.ts'
import { createEvaluationTallies } from './tally.ts'

/** Most rollouts of a split that the list reads. Those of training, which are many more, are left out. */
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

/** Summarises a run from its report, if it has one, else from its steps and evaluations. A run that cannot be read says why. */
export function listRun(id: string, path: string): RunListing {
  const nothing = { problem: null, steps: 0, rewards: [], rollouts: 0, before: null, after: null }
  const unknown = {
    id,
    name: basename(path),
    path: displayPath(path),
    createdAt: 0,
    status: 'interrupted' as const,
    ...nothing,
  }
  try {
    const manifest = readJson(path, 'manifest.json', RunManifest)
    const { kind = 'training', name = unknown.name, createdAt = 0 } = manifest ?? {}
    const listed = { ...unknown, kind, name, createdAt, status: runStatus(path).status }
    try {
      // A resumed run still has the report of the process before.
      const report = listed.status === 'running' ? null : readJson(path, 'report.json', AnyReport)
      return { ...listed, ...(report ? fromReport(report) : fromRecord(path, kind)) }
    } catch (error) {
      return { ...listed, problem: toTrainError(error, 'STORE_FAILED').message }
    }
  } catch (error) {
    return { ...unknown, kind: 'training', problem: toTrainError(error, 'STORE_FAILED').message }
  }
}

type Results = Pick<RunListing, 'steps' | 'rewards' | 'rollouts' | 'before' | 'after'>

function fromReport(report: AnyReport): Results {
  if (report.kind === 'evaluation') return { steps: 0, rewards: [], rollouts: report.rollouts, before: null, after: report.reward }
  const { curve, counts, before, after } = report
  const rewards = curve.map(({ reward }) => reward)
  return { steps: curve.length, rewards, rollouts: counts.rollouts, before: before?.reward ?? null, after: after?.reward ?? null }
}

function fromRecord(path: string, kind: RunListing['kind']): Results {
  const run = readRun(path)
  try {
    const steps = run.stepMetrics()
    const rewards = steps.flatMap(({ metrics }) => metrics['rewardMean'] ?? [])
    const rollouts = Object.values(run.statuses()).reduce((sum, count) => sum + count, 0)
    // A failed rollout counts 0 in a training's evaluations, and in an evaluation of its own not at all.
    const evaluations = createEvaluationTallies()
    for (const split of Object.keys(run.splits()).filter((each) => each !== 'train'))
      for (const row of run.rolloutRows({ split, finishedAfter: 0, limit: mostEvaluated }).rows)
        if (kind === 'evaluation' ? row.reward !== null : !isUnscored({ ...row, stopReason: row.stopReason ?? 'failed' }))
          evaluations.add({ ...row, reward: row.reward ?? 0 })
    const { before, after } = comparedEvaluations(evaluations.summaries())
    const [first, last] = kind === 'evaluation' ? [null, before] : [before, after]
    return { steps: steps.length, rewards, rollouts, before: first?.reward ?? null, after: last?.reward ?? null }
  } finally {
    run.close()
  }
}
