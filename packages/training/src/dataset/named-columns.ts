import { isRecord, stableStringify } from '@aworld-train/core'
import { parseMaybeJson } from './to-messages.ts'

export type Row = Readonly<Record<string, unknown>>

const promptColumns = ['prompt', 'input', 'question', 'Question', 'query', 'problem', 'instruction', 'messages', 'raw_prompt'] as const
const answerColumns = ['answer', 'ground_truth', 'groundTruth', 'Final answer', 'final_answer', 'target', 'label', 'solution'] as const
const idColumns = ['id', 'task_id', 'taskId', 'uid'] as const
const fileColumns = ['files', 'file_name', 'file_path'] as const
const sourceColumns = ['data_source', 'dataSource'] as const
const extraColumns = ['extra_info', 'extraInfo'] as const

/** Columns with a meaning of their own. All other columns are extra information. */
export const namedColumns: ReadonlySet<string> = new Set([
  ...promptColumns,
  ...answerColumns,
  ...idColumns,
  ...fileColumns,
  ...sourceColumns,
  ...extraColumns,
  'setup',
  'data',
  'ability',
  'reward_model',
  // These are for the agent loops of a trainer in Python, and no part of the task.
  'agent_name',
  'tools_kwargs',
  'interaction_kwargs',
])

/** The columns that are read from a row: for each thing the first that has a value, or else the first that exists. */
export interface ChosenColumns {
  readonly prompt: string | undefined
  /** Alpaca's `instruction`, which `input` continues; `null` where the prompt is in one column. */
  readonly instruction: string | null
  readonly answer: string | undefined
  readonly id: string | undefined
  readonly files: string | undefined
  readonly dataSource: string | undefined
  readonly extraInfo: string | undefined
  /** Columns that are not read, each with the one that is read in its place. */
  readonly unused: readonly (readonly [unused: string, used: string])[]
}

/** Chooses the columns to read. `promptKey` is the user's choice for the prompt. */
export function chooseColumns(row: Row, promptKey: string | undefined): ChosenColumns {
  const unused: [string, string][] = []
  const read = (name: string) => (name === 'reward_model' ? groundTruthOf(row[name]) : row[name])
  const choose = (names: readonly string[], hasValue: (name: string) => boolean = (name) => !isBlank(row[name])) => {
    const [used, ...others] = names.filter(hasValue)
    for (const name of others)
      if (stableStringify(read(name)) !== stableStringify(read(used as string))) unused.push([name, used as string])
    return used ?? names.find((name) => row[name] !== undefined && row[name] !== null)
  }
  const isAlpaca = promptKey === undefined && isBlank(row['prompt']) && isText(row['instruction']) && isText(row['input'])
  const prompts = promptColumns.filter((name) => name !== promptKey && !(isAlpaca && name === 'instruction'))
  return {
    prompt:
      promptKey === undefined ? choose(prompts) : choose([promptKey, ...prompts], (name) => name === promptKey || !isBlank(row[name])),
    instruction: isAlpaca ? 'instruction' : null,
    answer: choose(['reward_model', ...answerColumns], (name) => isAnswer(read(name))),
    id: choose(idColumns),
    files: choose(fileColumns),
    dataSource: choose(sourceColumns),
    extraInfo: choose(extraColumns),
    unused,
  }
}

/** Whether a value is an answer: test splits have "?" or nothing. */
export const isAnswer = (value: unknown) =>
  value !== undefined && value !== null && !(typeof value === 'string' && /^\s*\??\s*$/.test(value))

export function groundTruthOf(rewardModel: unknown): unknown {
  const value = parseMaybeJson(rewardModel)
  return isRecord(value) ? value['ground_truth'] : undefined
}

const isText = (value: unknown): value is string => typeof value === 'string' && value.trim() !== ''

function isBlank(value: unknown): boolean {
  if (typeof value === 'string') return value.trim() === ''
  return value === undefined || value === null || (Array.isArray(value) && value.length === 0)
}
