import { mkdir, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { planStart } from './plan-start.ts'
import type { PythonTrainingPlan } from './training-plan.ts'

/** The report on a training with a framework that was written and checked but not started. */
export interface DryRunReport {
  /** A folder with the files of a run. The next dry run of this name replaces it. */
  readonly path: string
  /** Names of the files in the folder. */
  readonly files: readonly string[]
  /** Name and version of the framework that accepts the configuration. */
  readonly trainer: string
  readonly version: string
  /** Sentences about what this machine lacks for the training; empty if it can train. */
  readonly lacks: readonly string[]
  /** Sentences for the user. */
  readonly notes: readonly string[]
}

/**
 * Renders a run directory and has the installed framework read and validate its configuration, which takes the time of its imports. No
 * rollout starts, and no process or GPU of the framework. Throws CONFIG_INVALID with everything that the framework refuses; nothing is
 * written then.
 */
export async function dryRun(plan: PythonTrainingPlan, runPath: string, signal?: AbortSignal): Promise<DryRunReport> {
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
