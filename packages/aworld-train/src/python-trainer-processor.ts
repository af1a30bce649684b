import type { RunReport, TrainerConfig } from '@aworld-train/core'
import {
  checkPythonTraining,
  checkTrainerReward,
  type DryRunReport,
  dryRun,
  type PythonTrainingPlan,
  runPythonTraining,
  type Trainer,
} from '@aworld-train/trainers/shared'
import type { RewardSource, TrainerSettings } from '@aworld-train/training'
import { PlanningTrainer } from './checks/planning-trainer.ts'
import { createEnvironment, openVerifier } from './environment.ts'
import { launcherEngines, workerEntry } from './launchers.ts'
import { trainerSections } from './policies/trainer-sections.ts'
import { takersOfAllRows } from './python-trainers.ts'

/** Trains with a framework: checks the modules of the training, serves rollouts to the framework and follows it. */
export abstract class PythonTrainerProcessor extends PlanningTrainer<PythonTrainingPlan> {
  abstract readonly trainer: Trainer
  /** The reason for a missing plan if nothing else is wrong with the training. */
  #missing: Error | null = null

  override async checkReward(rewardFunc?: unknown): Promise<void> {
    this.inputs.reward = rewardFunc as RewardSource | undefined
    await checkTrainerReward(this.trainer, this.inputs.reward, this.baseDirectory)
  }

  override async checkConfig(source?: unknown): Promise<TrainerConfig<TrainerSettings>> {
    const { config, plan, missing } = await checkPythonTraining(this.trainer, source, {
      ...this.inputs,
      baseDirectory: this.baseDirectory,
      runPath: this.runPath,
      sections: trainerSections,
      takersOfAllRows,
      launchers: { engines: launcherEngines, entry: workerEntry },
      createEnvironment,
      openVerifier,
    })
    this.planned = plan
    this.#missing = missing
    return config
  }

  protected override readyPlan(): PythonTrainingPlan {
    if (this.#missing) throw this.#missing
    return super.readyPlan()
  }

  override async train(signal: AbortSignal = new AbortController().signal): Promise<RunReport> {
    return await runPythonTraining(this.readyPlan(), { runPath: this.runPath, options: this.inputs.options, signal })
  }

  override async dryRun(signal?: AbortSignal): Promise<DryRunReport> {
    return await dryRun(this.readyPlan(), this.runPath, signal)
  }
}

/** The class that trains with a framework. */
export function pythonTrainerProcessor(trainer: Trainer): new (runPath: string) => PythonTrainerProcessor {
  return class extends PythonTrainerProcessor {
    override readonly trainer = trainer
  }
}
