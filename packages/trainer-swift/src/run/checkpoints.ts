import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

export const pathOf = (step: number) => `checkpoints/checkpoint-${step}`

/** Steps of the checkpoints that were written to their end, ascending: transformers writes trainer_state.json last (trainer.py, 5.23). */
export function checkpointSteps(folder: string): number[] {
  if (!existsSync(folder)) return []
  const steps = readdirSync(folder).flatMap((name) => /^checkpoint-(\d+)$/.exec(name)?.[1] ?? [])
  return steps
    .map(Number)
    .filter((step) => existsSync(join(folder, `checkpoint-${step}`, 'trainer_state.json')))
    .sort((a, b) => a - b)
}

/** The step that a start goes on from; 0 for none. */
export const resumableStep = (folder: string): number => checkpointSteps(folder).at(-1) ?? 0
