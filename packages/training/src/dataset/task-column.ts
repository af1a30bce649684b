import { didYouMean, TrainError, type TrainingTask } from '@aworld-train/core'

/** The value of a task in a column: from `extra_info`, from the row itself, or from `data`; `undefined` if the task has none. */
export function taskColumn({ extraInfo, data, dataSource }: TrainingTask, column: string): unknown {
  return extraInfo[column] ?? data[column] ?? (column === 'data_source' || column === 'dataSource' ? dataSource : undefined)
}

/** Throws CONFIG_INVALID if a key of the configuration names a column that none of the tasks has. */
export function requireColumn(tasks: readonly TrainingTask[], column: string, key: string): void {
  if (tasks.length === 0 || tasks.some((task) => taskColumn(task, column) !== undefined)) return
  const columns = new Set(tasks.flatMap(({ extraInfo, data }) => [...Object.keys(extraInfo), ...Object.keys(data), 'data_source']))
  throw new TrainError(
    'CONFIG_INVALID',
    `${key} names the column "${column}", which no task has, neither in its row nor in extra_info.${didYouMean(column, columns)}`,
    { details: { columns: [...columns] } },
  )
}

/** The kind of a task: its value in the column `kindKey`, or its data source. */
export function kindOf(task: TrainingTask, kindKey: string | null): string {
  return String((kindKey === null ? undefined : taskColumn(task, kindKey)) ?? task.dataSource)
}
