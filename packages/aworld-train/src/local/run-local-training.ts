import type { RunReport } from '@aworld-train/core'
import { type RunRequest, type SelfDrivenResult, trainSelfDriven } from '@aworld-train/training'
import { configurationHash } from './configuration-hash.ts'
import { inLocalRun } from './local-run.ts'
import type { LocalPlan } from './plan.ts'

/**
 * Runs a plan in a run directory: starts or resumes the run, trains, evaluates, and writes `report.json`. A new run that cannot start
 * leaves nothing.
 */
export async function runLocalTraining(plan: LocalPlan, request: RunRequest): Promise<RunReport> {
  return await inLocalRun(plan, { ...request, configurationHash: configurationHash(plan) }, async (run) => {
    const { stage, store, onEvent } = run
    let failed: SelfDrivenResult | undefined
    const result = await trainSelfDriven({
      learner: stage.policy.learner,
      reference: stage.policy.reference,
      loss: plan.loss,
      engine: stage.policy.engine,
      policies: stage.policy.members,
      // Policies swap weights by themselves, so groups that continue meanwhile are not held until the last of their calls has ended.
      gateway: plan.config.training.maxStaleness === 0 ? stage.gateway : undefined,
      runner: stage.runner,
      store,
      tasks: plan.train.tasks,
      evaluation: { test: plan.test?.tasks, validation: plan.validation?.tasks },
      config: plan.config,
      seed: plan.seed,
      signal: request.signal,
      onEvent,
      onFailure: (committed) => {
        failed = committed
      },
    }).catch(async (error: unknown) => {
      // A full disk may also fail the report. The first error is the one to throw.
      if (failed) await run.leaveReport(failed).catch(() => {})
      throw error
    })
    return await run.end(result)
  })
}
