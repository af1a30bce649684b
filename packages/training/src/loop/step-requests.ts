import type { RolloutLimits, RolloutRequest, TrainingTask } from '@aworld-train/protocol'
import type { LocalConfig, SamplingSettings, TrainingSettings } from '../config/local-config.ts'
import { kindOf } from '../dataset/task-column.ts'
import { drawTasks } from './draw-tasks.ts'

export interface StepRequestsInput {
  readonly tasks: readonly TrainingTask[]
  readonly seed: number
  readonly step: number
  readonly training: TrainingSettings
  readonly sampling: SamplingSettings
  readonly limits: RolloutLimits
  readonly policy: string
  /** Column of the rows that names a task's kind; `null` takes the data source. */
  readonly kindKey: string | null
  /** Times that this step was given up before. */
  readonly emptied: number
}

/**
 * The rollouts of a step, groups in the order of their tasks. `sample` is unique in the run:
 * ((step - 1) · promptsPerStep + position) · samplesPerPrompt + i, so that a task drawn again gets other random numbers.
 */
export function stepRequests({
  tasks,
  seed,
  step,
  training,
  sampling,
  limits,
  policy,
  kindKey,
  emptied,
}: StepRequestsInput): RolloutRequest[] {
  const { promptsPerStep, samplesPerPrompt, stratify } = training
  const name = emptied === 0 ? `${step}` : `${step}.${emptied}`
  return drawTasks(tasks, { seed, step, promptsPerStep, stratify }).flatMap((task, position) =>
    Array.from({ length: samplesPerPrompt }, (_, i) => ({
      version: 1 as const,
      key: `train/${name}/${position}/${i}`,
      task,
      group: `train/${name}/${position}`,
      sample: ((step - 1) * promptsPerStep + position) * samplesPerPrompt + i,
      split: 'train',
      step,
      kind: kindOf(task, kindKey),
      policy,
      sampling: { ...sampling, stop: [], seed: emptied },
      limits,
    })),
  )
}

/** Limits without the ones that are not set. */
export function toLimits(limits: LocalConfig['limits']): RolloutLimits {
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== null)) as RolloutLimits
}
