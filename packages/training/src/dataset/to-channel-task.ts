import { type AnswerKey, type ChannelDatasetRow, type ChannelSubmit, TrainError, TrainingTask } from '@aworld-train/core'
import { createProblemList } from './problem-list.ts'
import { toTask } from './to-task.ts'

/** Columns that trainers add to their rows. They are not part of the task. */
const ofTrainers: ReadonlySet<string> = new Set(['uid', 'session_id', 'global_steps'])

/**
 * A row of a trainer client as a task and its answer. Rows of the files that a run writes carry the task whole in
 * `extra_info.task_json`; others are read like those of any dataset. Throws ROLLOUT_INVALID, naming the column.
 */
export function toChannelTask(
  row: ChannelDatasetRow,
  { partition }: Pick<ChannelSubmit, 'partition'>,
): { task: TrainingTask; answer: AnswerKey } {
  const problems = createProblemList('The row', 5)
  const { prompt, dataSource, rewardModel, extraInfo, index } = row
  const columns = Object.entries(row.columns ?? {}).filter(([name]) => !ofTrainers.has(name))
  const { task_json: written, ...info } = extraInfo ?? {}
  const number = typeof index === 'number' ? index : 0
  const read = toTask(
    { ...Object.fromEntries(columns), prompt, data_source: dataSource ?? undefined, reward_model: rewardModel, extra_info: info },
    {
      number,
      position: number,
      split: partition === 'val' ? 'test' : 'train',
      files: null,
      promptKey: undefined,
      answers: 'optional',
      problems,
    },
  )
  if (!read) throw invalid(problems.toArray().map(({ message }) => message))
  const task = typeof written === 'string' ? readTask(written) : read.task
  return { task, answer: { version: 1, taskId: task.id, groundTruth: read.answer?.groundTruth ?? null } }
}

function readTask(text: string): TrainingTask {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (cause) {
    throw invalid([`extra_info.task_json is not JSON: ${cause instanceof Error ? cause.message : cause}.`])
  }
  const task = TrainingTask.safeParse(json)
  if (task.success) return task.data
  throw invalid(task.error.issues.slice(0, 3).map(({ path, message }) => `extra_info.task_json, ${path.join('.')}: ${message}.`))
}

function invalid(problems: readonly string[]): TrainError {
  return new TrainError('ROLLOUT_INVALID', `${problems.join(' ')} Correct the dataset of the trainer.`)
}
