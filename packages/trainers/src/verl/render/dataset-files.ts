import type { TrainerDataset } from '@aworld-train/core'
import { writeParquet } from '@aworld-train/training'

/**
 * Writes tasks in the columns that verl's RLHFDataset reads (verl/utils/dataset/rl_dataset.py, 0.9.1). All other parts of a task are one
 * JSON text in `extra_info.task_json`, because nested columns would be forced into one schema. The split is in `extra_info.split`, because
 * verl does not tell an agent loop that it validates.
 */
export async function writeVerlDataset({ tasks, answers }: TrainerDataset, split: 'train' | 'test', path: string): Promise<void> {
  const rows = tasks.map((task, index) => {
    const { files: _, ...plain } = task
    return { ...plain, data: {}, extraInfo: { ...task.extraInfo, index, split, task_json: JSON.stringify(task) } }
  })
  await writeParquet(rows, answers, path)
}
