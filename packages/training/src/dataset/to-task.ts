import { basename } from 'node:path'
import { didYouMean, isRecord, taskHash } from '@aworld-train/core'
import { type AnswerKey, type Message, TaskSetup, type TrainingTask } from '@aworld-train/protocol'
import type { LoadDatasetOptions } from './dataset-types.ts'
import type { ProblemList } from './problem-list.ts'
import type { FileFinder, TaskFile } from './task-file.ts'
import { parseMaybeJson, toMessages } from './to-messages.ts'

/** Names that a column may have; the first one with a value is used, and the others have no meaning. */
const promptColumns = ['prompt', 'input', 'question', 'Question', 'query', 'problem', 'instruction', 'messages', 'raw_prompt'] as const
const answerColumns = ['answer', 'ground_truth', 'groundTruth', 'Final answer', 'final_answer', 'target', 'label', 'solution'] as const
const idColumns = ['id', 'task_id', 'taskId', 'uid'] as const
const fileColumns = ['files', 'file_name', 'file_path'] as const
/** Columns with a meaning of their own. What else a row has is extra information. */
export const namedColumns: ReadonlySet<string> = new Set([
  ...promptColumns,
  ...answerColumns,
  ...idColumns,
  ...fileColumns,
  ...['setup', 'data', 'data_source', 'dataSource', 'ability', 'reward_model', 'extra_info', 'extraInfo'],
  // These are for the agent loops of a trainer in Python, and no part of the task.
  ...['agent_name', 'tools_kwargs', 'interaction_kwargs'],
])

export interface ToTaskOptions {
  readonly number: number
  readonly split: string
  /** `null` leaves the paths of files as they stand. */
  readonly files: FileFinder | null
  readonly promptKey: string | undefined
  readonly answers: NonNullable<LoadDatasetOptions['answers']>
  readonly problems: ProblemList
}

/**
 * The task and answer of a row in any of the named columns; `null` when it has a problem. The agent sees the prompt, the files and
 * what stands in `data`; whatever else a row has may give the answer away, and is extra information for the reward.
 */
export function toTask(row: unknown, options: ToTaskOptions): { task: TrainingTask; answer: AnswerKey | null } | null {
  const { number, split, problems, promptKey } = options
  if (!isRecord(row)) {
    problems.add(`the row is ${nameOf(row)}, not an object with columns.`, { row: number })
    return null
  }
  let failed = false
  const problem = (message: string, column: string | null) => {
    failed = true
    problems.add(message, { row: number, column })
  }
  const promptColumn = promptKey ?? firstPresent(row, promptColumns)
  const input = readPrompt(row, promptColumn, problem)
  const extraInfo = { ...readUnnamed(row, promptColumn), ...readExtraInfo(row, problem) }
  const groundTruth = readAnswer(row, extraInfo)
  if (groundTruth === undefined && options.answers === 'required') {
    problem('the row has no answer; add a column "answer", or "reward_model" with "ground_truth". An answer "?" is none.', null)
  }
  const dataSource = row['data_source'] ?? row['dataSource'] ?? 'unknown'
  if (typeof dataSource !== 'string') problem(`it is ${nameOf(dataSource)}, not text.`, 'data_source' in row ? 'data_source' : 'dataSource')
  const files = readFiles(row, options.files, problem)
  const id = readId(row, problem)
  const data = readData(row, problem)
  const setup = readSetup(row, problem)
  if (failed || input === null) return null
  const content = { input, data, ...(setup && { setup }) }
  // An agent sees a file's last name and its bytes.
  const hash = taskHash({ ...content, files: files.map(({ path, sha256 }) => ({ name: basename(path), sha256 })) })
  const task: TrainingTask = {
    version: 1,
    id: id ?? `${split}-${number}-${hash.slice(0, 6)}`,
    hash,
    ...content,
    ...(files.length > 0 && { files: files.map(({ path }) => path) }),
    dataSource: dataSource as string,
    extraInfo,
  }
  return { task, answer: groundTruth === undefined ? null : { version: 1, taskId: task.id, groundTruth } }
}

type AddProblem = (message: string, column: string | null) => void

function readPrompt(row: Readonly<Record<string, unknown>>, column: string | undefined, problem: AddProblem): string | Message[] | null {
  if (column === undefined || row[column] === undefined) {
    const columnName = column ?? 'prompt'
    problem(`the row has no prompt; add a column "${columnName}".${didYouMean(columnName, Object.keys(row))}`, column ?? null)
    return null
  }
  const value = parseMaybeJson(row[column])
  if (typeof value === 'string') {
    if (value.trim() !== '') return value
    problem('the prompt is empty.', column)
    return null
  }
  const messages = toMessages(value)
  if (typeof messages !== 'string') return messages
  problem(messages, column)
  return null
}

function readExtraInfo(row: Readonly<Record<string, unknown>>, problem: AddProblem): Record<string, unknown> {
  const column = row['extra_info'] === undefined ? 'extraInfo' : 'extra_info'
  const value = parseMaybeJson(row[column])
  const { ability } = row
  const extraAbility = typeof ability === 'string' && ability !== row['data_source'] ? { ability } : {}
  if (value === undefined || value === null || value === '') return extraAbility
  if (isRecord(value)) return { ...extraAbility, ...withoutNulls(value) }
  problem(`it is ${nameOf(value)}, not an object.`, column)
  return {}
}

/** The answer; `undefined` where the row has none, as in test splits, which have "?". A number stays a number. */
function readAnswer(row: Readonly<Record<string, unknown>>, extraInfo: Readonly<Record<string, unknown>>): unknown {
  const rewardModel = parseMaybeJson(row['reward_model'])
  const candidates = [
    isRecord(rewardModel) ? rewardModel['ground_truth'] : undefined,
    ...answerColumns.map((column) => row[column]),
    extraInfo['ground_truth'],
    extraInfo['answer'],
  ]
  return candidates.find((value) => value !== undefined && value !== null && !(typeof value === 'string' && /^\s*\??\s*$/.test(value)))
}

function readId(row: Readonly<Record<string, unknown>>, problem: AddProblem): string | null {
  const column = firstPresent(row, idColumns)
  if (column === undefined) return null
  const id = row[column]
  if (typeof id === 'number' || (typeof id === 'string' && id.trim() !== '')) return String(id)
  problem(`the id is ${id === '' ? 'empty' : nameOf(id)}; give text or a number, or leave the column out.`, column)
  return null
}

function readFiles(row: Readonly<Record<string, unknown>>, finder: FileFinder | null, problem: AddProblem): TaskFile[] {
  const column = firstPresent(row, fileColumns)
  if (column === undefined || row[column] === '') return []
  const value = parseMaybeJson(row[column])
  const paths = typeof value === 'string' ? [value] : value
  if (!Array.isArray(paths) || !paths.every((path) => typeof path === 'string')) {
    problem(`it is ${nameOf(value)}, not a path or a list of paths.`, column)
    return []
  }
  if (finder === null) return paths.map((path) => ({ path, sha256: null }))
  return paths.flatMap((path) => {
    const file = finder.find(path)
    if (file === null)
      problem(`"${path}" is no file in ${finder.folder}, links resolved; put the file there, or take it out of the row.`, column)
    return file ?? []
  })
}

function readSetup(row: Readonly<Record<string, unknown>>, problem: AddProblem): TaskSetup | null {
  const value = parseMaybeJson(row['setup'])
  if (value === undefined || value === null || value === '') return null
  const parsed = TaskSetup.safeParse(isRecord(value) ? withoutNulls(value) : value)
  if (parsed.success) return parsed.data
  problem(
    'it is no set-up of a workspace; give { "files": { path: text }, "commands": [command] }, either of which may be left out.',
    'setup',
  )
  return null
}

/** What the row declares for the agent. */
function readData(row: Readonly<Record<string, unknown>>, problem: AddProblem): Record<string, unknown> {
  const value = parseMaybeJson(row['data'])
  if (value === undefined || value === null || value === '') return {}
  if (isRecord(value)) return withoutNulls(value)
  problem(`it is ${nameOf(value)}, not an object of what the agent may see.`, 'data')
  return {}
}

const readUnnamed = (row: Readonly<Record<string, unknown>>, promptColumn: string | undefined) =>
  withoutNulls(Object.fromEntries(Object.entries(row).filter(([column]) => !namedColumns.has(column) && column !== promptColumn)))

/** Columnar files give every row the fields of all rows; `null` is a field that this row did not have. */
const withoutNulls = (record: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null && value !== undefined))

const firstPresent = (row: Readonly<Record<string, unknown>>, columns: readonly string[]) =>
  columns.find((column) => row[column] !== undefined && row[column] !== null)

function nameOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'an object'
  return typeof value === 'string' ? 'text' : `a ${typeof value}`
}
