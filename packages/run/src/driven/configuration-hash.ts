import { stableHash } from '@aworld-train/core'
import { bytesHash, datasetHash, exportHash } from '../inputs/input-hashes.ts'
import type { DrivenTrainingPlan } from './training-plan.ts'

/**
 * Runs of equal hash are the same command: the same configuration of the framework and settings of ours, tasks, answers, and bytes of the files
 * that are named as agent, reward and warm-up. The Python environment is no part of it, so that a run goes on after a repair of the environment.
 */
export function drivenConfigurationHash(plan: DrivenTrainingPlan): string {
  const { trainer, name, config, seed, agent, agentFiles, model, warmUp, train, test, reward } = plan
  const source = typeof reward?.source === 'string' ? reward.source : null
  return stableHash({
    trainer: trainer.name,
    name,
    keys: config.identity,
    settings: config.settings,
    seed,
    agent: agent.module,
    agentFiles: agentFiles.map(bytesHash),
    model,
    warmUp: model === null && warmUp !== null ? exportHash(warmUp, config.directory) : null,
    train: datasetHash(train),
    test: test && datasetHash(test),
    reward: source,
    rewardFile: source === null ? null : exportHash(source, reward!.directory),
  })
}
