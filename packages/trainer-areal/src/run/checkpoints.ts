import { existsSync, readdirSync } from 'node:fs'

export const pathOf = (step: number) => `checkpoints/step-${step}`

/** Steps of the checkpoints, ascending: the bridge gives one its name when it is whole. */
export function checkpointSteps(folder: string): number[] {
  if (!existsSync(folder)) return []
  const steps = readdirSync(folder).flatMap((name) => /^step-(\d+)$/.exec(name)?.[1] ?? [])
  return steps.map(Number).sort((a, b) => a - b)
}

/** The step that a start goes on from; 0 for none. */
export const resumableStep = (folder: string): number => checkpointSteps(folder).at(-1) ?? 0
