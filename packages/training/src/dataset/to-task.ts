import { basename } from 'node:path'
import { type AnswerKey, didYouMean, isRecord, type Message, TaskSetup, type TrainingTask, taskHash } from '@aworld-train/core'
import type { LoadDatasetOptions } from './dataset-types.ts'
import { type ChosenColumns, chooseColumns, groundTruthOf, isAnswer, namedColumns, type Row } from './named-columns.ts'
import type { ProblemList } from './problem-list.ts'
import type { FileFinder, TaskFile } from './task-file.ts'
import { parseMaybeJson, parseMessages, toMessages } from './to-messages.ts'

export interface ToTaskOptions {
  /** Number of the row in its file, for messages. */
  readonly number: number
  /** Position of the row in the dataset, for the id of a task that has none. */
  readonly position: number
  readonly split: string
  /** `null` leaves the paths of files as they are. */
  readonly files: FileFinder | null
  readonly promptKey: string | undefined
  readonly answers: NonNullable<LoadDatasetOptions['answers']>
  readonly problems: ProblemList
}

/**
 * The task and answer of a row in any of the named columns; `null` if it has a problem. The agent sees the prompt, the files and `data`.
 * All other columns may give the answer away; they are extra information for the reward.
 */
export function toTask(row: unknown, options: ToTaskOptions): { task: TrainingTask; answer: AnswerKey | null } | null {
  const { number, position, split, problems, promptKey } = options
  if (!isRecord(row)) {
    problems.add(`the row is ${nameOf(row)}, not an object with columns.`, { row: number })
    return null
  }
  let failed = false
  const problem = (message: string, column: string | null) => {
    failed = true
    problems.add(message, { row: number, column })
  }
  const columns = chooseColumns(row, promptKey)
  const input = readPrompt(row, columns, promptKey ?? 'prompt', problem)
  const extraInfo = { ...readUnnamed(row, columns.prompt), ...readExtraInfo(row, columns.extraInfo, problem) }
  const groundTruth = readAnswer(row, columns.answer, extraInfo)
  if (groundTruth === undefined && options.answers === 'required') {
    problem('the row has no answer; add a column "answer", or "reward_model" with "ground_truth". An answer "?" is none.', null)
  }
  const dataSource = (columns.dataSource === undefined ? undefined : row[columns.dataSource]) ?? 'unknown'
  if (typeof dataSource !== 'string') problem(`it is ${nameOf(dataSource)}, not text.`, columns.dataSource ?? null)
  const files = readFiles(row, columns.files, options.files, problem)
  const id = readId(row, columns.id, problem)
  const data = readData(row, problem)
  const setup = readSetup(row, problem)
  if (failed || input === null) return null
  const content = { input, data, ...(setup && { setup }) }
  // An agent sees only the last part of a file's path, and its bytes.
  const hash = taskHash({ ...content, files: files.map(({ path, sha256 }) => ({ name: basename(path), sha256 })) })
  const task: TrainingTask = {
    version: 1,
    id: id ?? `${split}-${position}-${hash.slice(0, 6)}`,
    hash,
    ...content,
    ...(files.length > 0 && { files: files.map(({ path }) => path) }),
    dataSource: dataSource as string,
    extraInfo,
  }
  return { task, answer: groundTruth === undefined ? null : { version: 1, taskId: task.id, groundTruth } }
}

type AddProblem = (message: string, column: string | null) => void

function readPrompt(row: Row, { prompt, instruction }: ChosenColumns, expected: string, problem: AddProblem): string | Message[] | null {
  if (prompt === undefined || row[prompt] === undefined || row[prompt] === null) {
    problem(`the row has no prompt; add a column "${expected}".${didYouMean(expected, Object.keys(row))}`, prompt ?? null)
    return null
  }
  const value = parseMessages(row[prompt])
  if (typeof value === 'string') {
    if (value.trim() !== '') return instruction === null ? value : `${row[instruction]}\n\n${value}`
    problem('the prompt is empty.', prompt)
    return null
  }
  const messages = toMessages(value)
  if (typeof messages !== 'string') return messages
  problem(messages, prompt)
  return null
}

function readExtraInfo(row: Row, column: string | undefined, problem: AddProblem): Record<string, unknown> {
  const value = column === undefined ? null : parseMaybeJson(row[column])
  const { ability } = row
  const extraAbility = typeof ability === 'string' && ability !== row['data_source'] ? { ability } : {}
  if (value === null || value === '') return extraAbility
  if (isRecord(value)) return { ...extraAbility, ...withoutNulls(value) }
  problem(`it is ${nameOf(value)}, not an object.`, column ?? null)
  return {}
}

/** Reads the answer; `undefined` if the row has none. A number stays a number. */
function readAnswer(row: Row, column: string | undefined, extraInfo: Row): unknown {
  const value = column === undefined ? undefined : column === 'reward_model' ? groundTruthOf(row[column]) : row[column]
  return [value, extraInfo['ground_truth'], extraInfo['answer']].find(isAnswer)
}

function readId(row: Row, column: string | undefined, problem: AddProblem): string | null {
  if (column === undefined) return null
  const id = row[column]
  if (typeof id === 'number' || (typeof id === 'string' && id.trim() !== '')) return String(id)
  problem(`the id is ${id === '' ? 'empty' : nameOf(id)}; give text or a number, or leave the column out.`, column)
  return null
}

function readFiles(row: Row, column: string | undefined, finder: FileFinder | null, problem: AddProblem): TaskFile[] {
  const value = column === undefined ? [] : row[column]
  if (column === undefined || value === '') return []
  const paths = [parseMaybeJson(value), [value]].find((list) => Array.isArray(list) && list.every((path) => typeof path === 'string')) as
    | string[]
    | undefined
  if (paths === undefined) {
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

function readSetup(row: Row, problem: AddProblem): TaskSetup | null {
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

/** Reads the data that the row declares for the agent. */
function readData(row: Row, problem: AddProblem): Record<string, unknown> {
  const value = parseMaybeJson(row['data'])
  if (value === undefined || value === null || value === '') return {}
  if (isRecord(value)) return withoutNulls(value)
  problem(`it is ${nameOf(value)}, not an object of what the agent may see.`, 'data')
  return {}
}

const readUnnamed = (row: Row, promptColumn: string | undefined) =>
  withoutNulls(Object.fromEntries(Object.entries(row).filter(([column]) => !namedColumns.has(column) && column !== promptColumn)))

/** Columnar files give every row the fields of all rows. `null` is a field that the original row did not have. */
const withoutNulls = (record: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null && value !== undefined))

function nameOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'an object'
  return typeof value === 'string' ? 'text' : `a ${typeof value}`
}
