import { stableHash } from '@aworld-train/core'
import { bytesHash, datasetHash, exportHash, hashesByName, settingInputs } from '@aworld-train/training'
import type { LocalPlan } from './plan.ts'

/**
 * The configuration hash of a training. Runs of equal hash are runs of the same command: equal settings, tasks, answers, and bytes of the
 * files named as agent, reward and warm-up. The imports of those files, and an agent or reward given as an object, are not part of it:
 * after a change there, start over with `fresh` (`--new`).
 */
export const configurationHash = (plan: LocalPlan): string => stableHash(inputsOf(plan))

/** Hashes of the parts of the configuration hash, by names for people. */
export const inputHashes = (plan: LocalPlan): Record<string, string> => hashesByName(inputsOf(plan))

/** What is the same for one policy alone, whether or not others could stand beside it. */
const alone = <T>(values: readonly T[]): T | readonly T[] => (values.length === 1 ? values[0]! : values)

function inputsOf(plan: LocalPlan) {
  const tasks = (dataset: LocalPlan['test']) => dataset && datasetHash(dataset)
  const { rewardSource, rewardDirectory, configDirectory, policies } = plan
  const { loss } = plan.config.training
  return {
    'the name': plan.name,
    ...settingInputs(plan.config),
    'the seed': plan.seed,
    'the policy': alone(policies.map(({ chosen }) => chosen.settings)),
    'the agent': [plan.agent.module, plan.agent.files.map(bytesHash)],
    'the model': alone(
      policies.map(({ model, warmUp }) => [model, warmUp, model === null && warmUp !== null ? exportHash(warmUp, configDirectory) : null]),
    ),
    'the training tasks': tasks(plan.train),
    'the validation tasks': tasks(plan.validation),
    'the test tasks': tasks(plan.test),
    'the loss': typeof loss === 'string' ? exportHash(loss, configDirectory) : loss && String(loss),
    'the reward': typeof rewardSource === 'string' ? [rewardSource, exportHash(rewardSource, rewardDirectory)] : null,
  }
}
