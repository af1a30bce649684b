import type { RolloutLimits, RolloutRequest, TrainingTask } from '@aworld-train/core'
import type { LocalConfig, SamplingSettings, TrainingSettings } from '../config/local-config.ts'
import { kindOf } from '../dataset/task-column.ts'
import { drawTasks } from './draw-tasks.ts'
import type { DrawnGroup } from './group-stream.ts'

export interface GroupRequestsInput {
  readonly tasks: readonly TrainingTask[]
  readonly seed: number
  readonly training: TrainingSettings
  readonly sampling: SamplingSettings
  readonly limits: RolloutLimits
  readonly policy: string
  /** Column that names a task's kind; `null` takes the data source. */
  readonly kindKey: string | null
}

/**
 * The rollouts of each group. A key names the step and the position that the group would have if every step trained its own draws. `sample`
 * is unique in the run: draw · samplesPerPrompt + i, so that a task drawn again gets other random numbers.
 */
export function groupRequests(
  groups: readonly DrawnGroup[],
  { tasks, seed, training, sampling, limits, policy, kindKey }: GroupRequestsInput,
): RolloutRequest[][] {
  const { promptsPerStep, samplesPerPrompt, stratify, teachingPrompts } = training
  const drawnTasks = new Map<number, TrainingTask[]>()
  return groups.map((group) => {
    const { draw, admitted, emptied } = group
    const step = Math.floor(draw / promptsPerStep) + 1
    const drawn = drawnTasks.get(step) ?? drawTasks(tasks, { seed, step, promptsPerStep, stratify, isMixed: teachingPrompts !== null })
    drawnTasks.set(step, drawn)
    const position = draw % promptsPerStep
    const task = drawn[position]!
    const id = groupId(group, promptsPerStep)
    return Array.from({ length: samplesPerPrompt }, (_, i) => ({
      version: 1 as const,
      key: `${id}/${i}`,
      task,
      group: id,
      sample: draw * samplesPerPrompt + i,
      split: 'train',
      step: admitted,
      kind: kindOf(task, kindKey),
      policy,
      sampling: { ...sampling, stop: [], seed: emptied },
      limits,
    }))
  })
}

/** The name of a group in its requests. */
export function groupId({ draw, emptied }: DrawnGroup, promptsPerStep: number): string {
  const step = Math.floor(draw / promptsPerStep) + 1
  return `train/${emptied === 0 ? step : `${step}.${emptied}`}/${draw % promptsPerStep}`
}

/** Limits, reduced to those that are set. */
export function toLimits(limits: LocalConfig['limits']): RolloutLimits {
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== null)) as RolloutLimits
}
