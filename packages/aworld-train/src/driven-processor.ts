import type { DrivenConfig } from '@aworld-train/core'
import type { RunReport } from '@aworld-train/protocol'
import {
  checkDrivenReward,
  checkDrivenTraining,
  type DrivenTrainingPlan,
  type Driver,
  type DryRunReport,
  dryRun,
  runDrivenTraining,
} from '@aworld-train/run'
import type { DrivenSettings, RewardSource } from '@aworld-train/training'
import { PlanningTrainer } from './checks/planning-trainer.ts'
import { takersOfAllRows } from './driven-trainers.ts'
import { createEnvironment } from './environment.ts'
import { trainerSections } from './policies/trainer-sections.ts'

/** Trains with a framework: checks the modules of the training, serves rollouts to the framework and follows it. */
export abstract class DrivenProcessor extends PlanningTrainer<DrivenTrainingPlan> {
  abstract readonly trainer: Driver
  /** The reason for a missing plan if nothing else is wrong with the training. */
  #missing: Error | null = null

  override async checkReward(rewardFunc?: unknown): Promise<void> {
    this.inputs.reward = rewardFunc as RewardSource | undefined
    await checkDrivenReward(this.trainer, this.inputs.reward, this.baseDirectory)
  }

  override async checkConfig(source?: unknown): Promise<DrivenConfig<DrivenSettings>> {
    const { config, plan, missing } = await checkDrivenTraining(this.trainer, source, {
      ...this.inputs,
      baseDirectory: this.baseDirectory,
      runPath: this.runPath,
      sections: trainerSections,
      takersOfAllRows,
      createEnvironment: (baseDirectory) => createEnvironment({ baseDirectory }),
    })
    this.planned = plan
    this.#missing = missing
    return config
  }

  protected override readyPlan(): DrivenTrainingPlan {
    if (this.#missing) throw this.#missing
    return super.readyPlan()
  }

  override async train(signal: AbortSignal = new AbortController().signal): Promise<RunReport> {
    return await runDrivenTraining(this.readyPlan(), { runPath: this.runPath, options: this.inputs.options, signal })
  }

  override async dryRun(signal?: AbortSignal): Promise<DryRunReport> {
    return await dryRun(this.readyPlan(), this.runPath, signal)
  }
}

/** The class that trains with a framework. */
export function drivenProcessor(trainer: Driver): new (runPath: string) => DrivenProcessor {
  return class extends DrivenProcessor {
    override readonly trainer = trainer
  }
}
