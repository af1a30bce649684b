import { stableHash } from '@aworld-train/core'
import { bytesHash, exportHash } from '@aworld-train/run'
import type { LocalPlan } from './plan.ts'

/**
 * Runs of equal hash are the same command: the same settings, tasks, answers, and bytes of the files that are named as agent,
 * reward and warm-up. Neither the imports of those files nor an agent or reward given as an object are part of it: after a change there,
 * start over with `fresh` (`--new`).
 */
export function configurationHash(plan: LocalPlan): string {
  const tasks = (dataset: LocalPlan['test']) => dataset?.tasks.map(({ hash }) => hash) ?? null
  const { rewardSource, rewardDirectory, warmUp, configDirectory } = plan
  // Where numbers are read or logged and where agents run changes no training; the experiment is in the name.
  const {
    executor: _executor,
    gateway: _gateway,
    logging: _logging,
    projectName: _project,
    experimentName: _experiment,
    ...config
  } = plan.config
  return stableHash({
    name: plan.name,
    config,
    seed: plan.seed,
    policy: plan.policy.settings,
    agent: plan.agentModule,
    agentFiles: plan.agentFiles.map(bytesHash),
    model: plan.model,
    warmUp,
    warmUpFile: plan.model === null && warmUp !== null ? exportHash(warmUp, configDirectory) : null,
    train: tasks(plan.train),
    validation: tasks(plan.validation),
    test: tasks(plan.test),
    answers: [plan.train, plan.validation, plan.test].map((dataset) => dataset && [...dataset.answers.values()]),
    reward: typeof rewardSource === 'string' ? rewardSource : null,
    rewardFile: typeof rewardSource === 'string' ? exportHash(rewardSource, rewardDirectory) : null,
  })
}
