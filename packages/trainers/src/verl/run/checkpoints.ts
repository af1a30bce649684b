import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { TrainError } from '@aworld-train/core'

/**
 * The step that verl resumes from in the folder of its checkpoints, read from `latest_checkpointed_iteration.txt`
 * (verl/utils/checkpoint/checkpoint_manager.py, 0.9.1); 0 for none.
 */
export function resumableStep(directory: string): number {
  let text: string
  try {
    text = readFileSync(join(directory, 'latest_checkpointed_iteration.txt'), 'utf8')
  } catch {
    return 0
  }
  const step = Number(text.trim())
  return Number.isInteger(step) && existsSync(join(directory, `global_step_${step}`)) ? step : 0
}

/** Steps with a checkpoint of verl, ascending. One newer than `resumableStep` may be half written. */
export function checkpointSteps(directory: string): number[] {
  if (!existsSync(directory)) return []
  const steps = readdirSync(directory).flatMap((name) => /^global_step_(\d+)$/.exec(name)?.[1] ?? [])
  return steps.map(Number).sort((a, b) => a - b)
}

/** Folder of the actor's checkpoint of `step`, or of the newest one by default. Throws CHECKPOINT_CORRUPT if there is none. */
export function actorCheckpoint(checkpoints: string, step?: number): { readonly step: number; readonly directory: string } {
  const chosenStep = step ?? resumableStep(checkpoints)
  const directory = join(checkpoints, `global_step_${chosenStep}`, 'actor')
  if (chosenStep > 0 && existsSync(directory)) return { step: chosenStep, directory }
  const steps = checkpointSteps(checkpoints)
  const which = step === undefined ? 'no checkpoint' : `no checkpoint of step ${step}`
  throw new TrainError(
    'CHECKPOINT_CORRUPT',
    `${checkpoints} has ${which}${steps.length > 0 ? `; there are those of the steps ${steps.join(', ')}` : ': set trainer.save_freq, and let the run reach it'}.`,
  )
}
