import { stableHash } from '@aworld-train/core'
import { bytesHash, datasetHash, exportHash, hashesByName, settingInputs } from '@aworld-train/training'
import { describeAgent } from './plan-start.ts'
import type { PythonTrainingPlan } from './training-plan.ts'

/**
 * The configuration hash of a training. Runs of equal hash are runs of the same command: equal configuration of the framework, settings of
 * ours, tasks, answers, and bytes of the files named as agent, reward and warm-up. The Python environment is not part of it, so that a run
 * continues after the environment is repaired.
 */
export const trainerConfigurationHash = (plan: PythonTrainingPlan): string => stableHash(inputsOf(plan))

/** Hashes of the parts of the configuration hash, by names for people. */
export const trainerInputHashes = (plan: PythonTrainingPlan): Record<string, string> => hashesByName(inputsOf(plan))

function inputsOf(plan: PythonTrainingPlan) {
  const { trainer, name, config, seed, agent, model, warmUp, train, test, reward } = plan
  const source = typeof reward?.source === 'string' ? reward.source : null
  return {
    'the trainer': trainer.name,
    'the name': name,
    [`the keys of ${trainer.name}`]: config.identity,
    ...settingInputs(config.settings),
    'the seed': seed,
    'the agent': [describeAgent(agent).module, agent.files.map(bytesHash)],
    'the model': [model, model === null && warmUp !== null ? exportHash(warmUp, config.directory) : null],
    'the training tasks': datasetHash(train),
    'the test tasks': test && datasetHash(test),
    'the reward': source === null ? null : [source, exportHash(source, reward!.directory)],
  }
}
