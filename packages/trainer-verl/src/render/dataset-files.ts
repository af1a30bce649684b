import { TrainError } from '@aworld-train/protocol'
import { verlReservedColumns } from '@aworld-train/python-bridge'
import { type LoadedDataset, writeParquet } from '@aworld-train/training'

/** Sentences about columns that would replace what the agent loop returns; verl writes a row over its output. */
export function reservedColumnProblems({ tasks }: LoadedDataset, name: string): string[] {
  const columns = new Set(tasks.flatMap(({ data }) => Object.keys(data)))
  return Object.entries(verlReservedColumns.overwritesOutput)
    .filter(([column]) => columns.has(column))
    .map(([column, what]) => `${name} has a column "${column}", which verl would write over ${what}; rename the column.`)
}

/**
 * Writes tasks in the columns that verl's RLHFDataset reads (verl/utils/dataset/rl_dataset.py, 0.9.1). Everything of a task
 * that is no such column is one JSON text in `extra_info.task_json`: nested columns would be forced into one schema. The split
 * stands in `extra_info.split`, since verl does not tell an agent loop that it validates. Throws DATASET_INVALID.
 */
export async function writeVerlDataset({ tasks, answers, problems }: LoadedDataset, split: 'train' | 'test', path: string): Promise<void> {
  const reserved = reservedColumnProblems({ tasks, answers, problems }, split === 'train' ? 'the training data' : 'the test data')
  if (reserved.length > 0) throw new TrainError('DATASET_INVALID', reserved.join('\n'), { details: { problems: reserved } })
  const rows = tasks.map((task, index) => {
    const { files: _, ...plain } = task
    return { ...plain, data: {}, extraInfo: { ...task.extraInfo, index, split, task_json: JSON.stringify(task) } }
  })
  await writeParquet(rows, answers, path)
}
