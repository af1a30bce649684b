import type { DrivenDataset } from '@aworld-train/core'
import { writeParquet } from '@aworld-train/training'

/**
 * Writes tasks in the columns that verl's RLHFDataset reads (verl/utils/dataset/rl_dataset.py, 0.9.1). Everything of a task
 * that is no such column is one JSON text in `extra_info.task_json`: nested columns would be forced into one schema. The split
 * stands in `extra_info.split`, since verl does not tell an agent loop that it validates.
 */
export async function writeVerlDataset({ tasks, answers }: DrivenDataset, split: 'train' | 'test', path: string): Promise<void> {
  const rows = tasks.map((task, index) => {
    const { files: _, ...plain } = task
    return { ...plain, data: {}, extraInfo: { ...task.extraInfo, index, split, task_json: JSON.stringify(task) } }
  })
  await writeParquet(rows, answers, path)
}
