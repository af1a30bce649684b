import { mkdir, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { planStart } from './plan-start.ts'
import type { DrivenTrainingPlan } from './training-plan.ts'

/** What a training with a framework would start with. */
export interface DryRunReport {
  /** A folder with the files of a run, without a run; the next dry run of this name replaces it. */
  readonly path: string
  /** Names of the files in the folder. */
  readonly files: readonly string[]
  /** The framework that takes the configuration, and its version. */
  readonly trainer: string
  readonly version: string
  /** What this machine lacks for the training, as sentences; none where it can train. */
  readonly lacks: readonly string[]
  /** Sentences for the user. */
  readonly notes: readonly string[]
}

/**
 * Renders a run directory and has the installed framework read and validate its configuration, which takes the time of its
 * imports; no rollout, process or GPU of it is started. CONFIG_INVALID names everything that it refuses, and then nothing is written.
 */
export async function dryRun(plan: DrivenTrainingPlan, runPath: string, signal?: AbortSignal): Promise<DryRunReport> {
  const { trainer, python } = plan
  const name = `${plan.name}-dry-run`
  const path = join(resolve(runPath), name)
  const model = plan.model ?? join(path, 'model')
  const planned = await planStart(plan, { path, name, model, incarnation: 'dry-run', resume: false }, signal)
  await rm(path, { recursive: true, force: true })
  await mkdir(path, { recursive: true })
  const files = await trainer.writeFiles(planned, plan)
  const lacks = await trainer.lacks(planned, { python: python.path, env: process.env, directory: path, signal })
  return { path, files, trainer: trainer.name, version: planned.version, lacks, notes: plan.notes }
}
