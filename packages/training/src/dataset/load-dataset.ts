import { type AnswerKey, didYouMean, isRecord, stableHash, suggest, TrainError, type TrainingTask } from '@aworld-train/core'
import type { DatasetSource, LoadDatasetOptions, LoadedDataset } from './dataset-types.ts'
import { chooseColumns, namedColumns } from './named-columns.ts'
import { createProblemList } from './problem-list.ts'
import { pathsOf, readRows } from './read-rows.ts'
import { createFileFinder, type FileFinder } from './task-file.ts'
import { toTask } from './to-task.ts'

const optionNames = [
  'split',
  'promptKey',
  'answers',
  'filesDirectory',
  'maxProblems',
  'signal',
] as const satisfies readonly (keyof LoadDatasetOptions)[]

/**
 * Reads tasks and answers. Problems of the data are collected (at most `maxProblems`), never thrown. Throws CONFIG_INVALID for an unknown
 * option.
 */
export async function loadDataset(source: DatasetSource, options: LoadDatasetOptions = {}): Promise<LoadedDataset> {
  const {
    split = 'train',
    answers: answersNeeded = 'required',
    filesDirectory = process.cwd(),
    maxProblems = 20,
    promptKey,
    signal,
  } = options
  for (const name of Object.keys(options))
    if (!optionNames.includes(name as keyof LoadDatasetOptions))
      throw new TrainError('CONFIG_INVALID', `loadDataset has no option "${name}".${didYouMean(name, optionNames)}`)
  const all = createProblemList(pathsOf(source)?.join(', ') ?? `the ${split} rows`, maxProblems)
  const tasks: TrainingTask[] = []
  const answers = new Map<string, AnswerKey>()
  const placeOfId = new Map<string, { readonly file: string | null; readonly number: number }>()
  const unnamed = new Set<string>()
  const unused = new Map<string, string>()
  let current = { file: undefined as string | null | undefined, problems: all, files: null as FileFinder | null }
  let rows = 0
  // Rows are counted on through several files, so that equal rows of two files have different ids.
  let [before, last] = [0, 0]
  for await (const { row, number, file } of readRows(source, all)) {
    signal?.throwIfAborted()
    rows++
    if (file !== current.file) {
      const files = filesDirectory === null ? null : createFileFinder(file ?? filesDirectory)
      current = { file, problems: file === null ? all : all.of(file), files }
      before = last
    }
    last = before + number
    const { problems, files } = current
    if (isRecord(row)) {
      for (const column of Object.keys(row)) if (!namedColumns.has(column) && column !== promptKey) unnamed.add(column)
      for (const [column, used] of chooseColumns(row, promptKey).unused) unused.set(column, used)
    }
    const read = toTask(row, { number, position: last, split, files, promptKey, answers: answersNeeded, problems })
    if (!read) continue
    const { task, answer } = read
    const earlier = placeOfId.get(task.id)
    if (earlier !== undefined) {
      const where = earlier.file === file ? `row ${earlier.number}` : `row ${earlier.number} of ${earlier.file}`
      problems.add(`the task id "${task.id}" stands in ${where} already; give each task an id of its own.`, { row: number })
      continue
    }
    placeOfId.set(task.id, { file, number })
    tasks.push(task)
    if (answer) answers.set(task.id, answer)
  }
  if (rows === 0 && all.toArray().length === 0) all.add(['there are no rows; give at least one.', ...all.leftOut()].join(' '))
  const { notes, warnings } = unnamedColumns([...unnamed])
  return { tasks, answers, problems: all.toArray(), notes, warnings: [...all.leftOut(), ...unusedWarning([...unused]), ...warnings] }
}

/** Loads as `loadDataset` does, but throws DATASET_INVALID with every problem. */
export async function requireDataset(source: DatasetSource, options: LoadDatasetOptions = {}): Promise<LoadedDataset> {
  const loaded = await loadDataset(source, options)
  if (loaded.problems.length === 0) return loaded
  throw new TrainError('DATASET_INVALID', loaded.problems.map(({ message }) => message).join('\n'), {
    details: { problems: loaded.problems },
  })
}

function unusedWarning(pairs: readonly (readonly [string, string])[]): string[] {
  if (pairs.length === 0) return []
  const list = pairs.map(([column, used]) => `"${column}" is not read, since "${used}" comes before it`).join(', and ')
  return [`${list}; leave out what is not meant, or give it a name of its own.`]
}

/** Sentences about columns whose names are not ours. They do not name the file, so that equal columns of two files are reported once. */
function unnamedColumns(columns: readonly string[]): Pick<LoadedDataset, 'notes' | 'warnings'> {
  const isTypo = (column: string) => suggest(column, namedColumns) !== null
  return { notes: unnamedNote(columns.filter((column) => !isTypo(column))), warnings: unnamedNote(columns.filter(isTypo)) }
}

function unnamedNote(columns: readonly string[]): string[] {
  if (columns.length === 0) return []
  const meant = columns.flatMap((column) => {
    const name = suggest(column, namedColumns)
    return name === null ? [] : [` Did you mean "${name}" by "${column}"?`]
  })
  const list = columns.map((column) => `"${column}"`).join(', ')
  return [
    `${list} ${columns.length === 1 ? 'goes' : 'go'} to the reward as extra information, and not to the agent; what the agent may see stands in the column "data".${meant.join('')}`,
  ]
}

/**
 * Tasks of `test` that are also in `train`: with equal prompt, files and data, equal answer and equal extra information, wherever they are
 * in the file.
 */
export function datasetOverlap(train: TasksAndAnswers, test: TasksAndAnswers): TrainingTask[] {
  const contents = new Set(train.tasks.map((task) => contentOf(task, train)))
  return test.tasks.filter((task) => contents.has(contentOf(task, test)))
}

type TasksAndAnswers = Pick<LoadedDataset, 'tasks' | 'answers'>

function contentOf({ id, hash, extraInfo }: TrainingTask, { answers }: TasksAndAnswers): string {
  const { split: _split, index: _index, ...rest } = extraInfo
  return stableHash({ hash, answer: answers.get(id)?.groundTruth, extraInfo: rest })
}
