import { mkdir, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { judgeStart, writeRunFiles } from '@aworld-train/trainer-verl'
import { planRun } from './plan-run.ts'
import type { VerlTrainingPlan } from './verl-training-plan.ts'

/** What a training with verl would start with. */
export interface DryRunReport {
  /** A folder with the files of a run, without a run; the next dry run of this name replaces it. */
  readonly path: string
  /** Names of the files in the folder. */
  readonly files: readonly string[]
  /** Version of verl that takes the configuration. */
  readonly verl: string
  /** What this machine lacks for the training, as sentences; none where it can train. */
  readonly lacks: readonly string[]
  /** Sentences for the user. */
  readonly notes: readonly string[]
}

/**
 * Renders a run directory and has the installed verl compose and validate its configuration, which takes about 15 s; no
 * rollout, Ray or GPU is started. CONFIG_INVALID names everything that verl refuses, and then nothing is written.
 */
export async function dryRunVerl(plan: VerlTrainingPlan, runPath: string, signal?: AbortSignal): Promise<DryRunReport> {
  const name = `${plan.name}-dry-run`
  const path = join(resolve(runPath), name)
  const model = plan.model ?? join(path, 'model')
  const planned = await planRun(plan, { path, name, model, incarnation: 'dry-run', resume: false }, signal)
  await rm(path, { recursive: true, force: true })
  await mkdir(path, { recursive: true })
  const files = await writeRunFiles(planned, { train: plan.train, test: plan.test })
  const lacks = await judgeStart(planned, { python: plan.python.path, signal })
  return { path, files, verl: planned.verl.version, lacks, notes: plan.notes }
}
