import { stableHash } from '@aworld-train/core'
import { bytesHash, datasetHash, exportHash, hashesByName } from '../inputs/input-hashes.ts'
import type { DrivenTrainingPlan } from './training-plan.ts'

/**
 * Runs of equal hash are the same command: the same configuration of the framework and settings of ours, tasks, answers, and bytes of the files
 * that are named as agent, reward and warm-up. The Python environment is no part of it, so that a run goes on after a repair of the environment.
 */
export const drivenConfigurationHash = (plan: DrivenTrainingPlan): string => stableHash(inputsOf(plan))

/** Hashes of what the configuration hash is made of, by the names that people know. */
export const drivenInputHashes = (plan: DrivenTrainingPlan): Record<string, string> => hashesByName(inputsOf(plan))

function inputsOf(plan: DrivenTrainingPlan) {
  const { trainer, name, config, seed, agent, agentFiles, model, warmUp, train, test, reward } = plan
  const source = typeof reward?.source === 'string' ? reward.source : null
  return {
    'the trainer': trainer.name,
    'the name': name,
    [`the keys of ${trainer.name}`]: config.identity,
    ...Object.fromEntries(Object.entries(config.settings).map(([key, value]) => [`the setting ${key}`, value])),
    'the seed': seed,
    'the agent': [agent.module, agentFiles.map(bytesHash)],
    'the model': [model, model === null && warmUp !== null ? exportHash(warmUp, config.directory) : null],
    'the training tasks': datasetHash(train),
    'the test tasks': test && datasetHash(test),
    'the reward': source === null ? null : [source, exportHash(source, reward!.directory)],
  }
}
