import { existsSync, statSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { TrainError } from '@aworld-train/core'
import { FrozenModelSettings } from '@aworld-train/training'
import { type EvaluationOptions, evaluationOf } from 'aworld-train'
import { z } from 'zod'
import { loadProject, projectFileNames } from '../load-project.ts'

/** Flags that say what is evaluated. They are kept with the run, so that it can be repeated. */
export const evaluationFlags = z.object({
  data: z.string().optional().describe('tasks: .csv, .jsonl, .json, .parquet, or a folder; instead of the test set of the project'),
  reward: z.string().optional().describe('reward, ./reward.ts#name or ./reward.py#name; without one answers are collected'),
  model: z
    .array(z.string())
    .optional()
    .describe(
      'openai:NAME, anthropic:NAME, http://host/v1#NAME, a model folder, a checkpoint or a run, a name in "models", or none; several are run and compared',
    ),
  config: z.string().optional().describe('configuration, instead of that of the project'),
  samples: z.int().min(1).optional().describe('rollouts of each task; pass@k is given for k up to this'),
  seed: z.int().min(0).optional().describe('seed of sampling'),
  kind: z.string().optional().describe('column of the tasks by which results are split'),
  concurrency: z.int().min(1).optional().describe('rollouts at once'),
  dialect: FrozenModelSettings.shape.dialect.unwrap().optional().describe('API that the address speaks'),
  keyEnv: z.string().optional().describe('environment variable that holds the key of the address'),
  price: z.string().optional().describe('INPUT,OUTPUT or INPUT,OUTPUT,CACHED: US dollars for a million tokens of the model'),
  tokens: z
    .string()
    .optional()
    .describe('folder with tokenizer and template of a model that vLLM or SGLang serves: what it samples is recorded as token ids'),
  budget: z.number().min(0).optional().describe('US dollars that the evaluation may cost; rollouts beyond it do not start'),
  exactModel: z.boolean().optional().describe('refuse an answer of a model of another name'),
  cassette: z.string().optional().describe('file of answers of the model: recorded if it does not exist, replayed if it does'),
})

/** A command as its run keeps it. Paths are relative to `directory`. */
export const EvaluationCommand = z.object({ directory: z.string(), target: z.string().nullable(), flags: evaluationFlags })
export type EvaluationCommand = z.infer<typeof EvaluationCommand>

/** What a command evaluates, with the parent folder of its runs if the project names one. */
export interface CommandEvaluation extends EvaluationOptions {
  readonly runPath?: string | undefined
}

/**
 * Reads a command: its target is an agent, or the folder or file of a project, whose parts stand where flags name none. Throws
 * CONFIG_INVALID, MODULE_INVALID.
 */
export async function readCommand(command: EvaluationCommand): Promise<CommandEvaluation> {
  const { directory, target, flags } = command
  const at = (path: string) => resolve(directory, path)
  const project = await projectOf(directory, target)
  const agent = project === null || isAgent(directory, target) ? target : null
  if (agent === null && project === null)
    throw new TrainError(
      'CONFIG_INVALID',
      `There is no agent: name one, as in aworld-train eval ./agent.ts --data questions.csv --model openai:NAME, or start in a project with ${projectFileNames[0]}.`,
    )
  const { data, reward, config, samples, seed, kind, concurrency, dialect, keyEnv, price, budget, exactModel, tokens, cassette } = flags
  const [model] = flags.model ?? []
  const flag = {
    agent: agent === null ? undefined : at(agent),
    dataset: data === undefined ? undefined : at(data),
    rewardFunc: reward === undefined ? undefined : at(reward),
    config: config === undefined ? undefined : at(config),
    model: model !== undefined && existsSync(at(model)) ? at(model) : model,
    cassette: cassette === undefined ? undefined : at(cassette),
    tokens: tokens === undefined ? undefined : at(tokens),
    price: price === undefined ? undefined : readPrice(price),
    ...{ samples, seed, kindKey: kind, concurrency, dialect, apiKeyEnv: keyEnv, budget, exactModel },
  }
  const set = Object.fromEntries(Object.entries(flag).filter(([, value]) => value !== undefined))
  const ofProject = project ? evaluationOf(project) : { agent: agent!, dataset: undefined, baseDirectory: directory }
  return { ...ofProject, ...set, runPath: project?.runPath, command }
}

/** Whether a target is an agent, and no project: a file of any other name, or one with an export. */
function isAgent(directory: string, target: string | null): boolean {
  if (target === null) return false
  const path = resolve(directory, target)
  if (existsSync(path) && statSync(path).isDirectory()) return false
  return !projectFileNames.includes(basename(path))
}

/** The definition of the project that a target names, or of that in the folder; `null` without one. */
export async function projectOf(directory: string, target: string | null) {
  const place = target !== null && !isAgent(directory, target) ? resolve(directory, target) : directory
  const isNamed = target !== null && place !== directory
  if (!isNamed && !projectFileNames.some((name) => existsSync(join(directory, name)))) return null
  return (await loadProject(place)).definition
}

function readPrice(text: string): NonNullable<EvaluationOptions['price']> {
  const [input, output, cachedInput] = text.split(',').map(Number)
  const isPrice = (value: number | undefined) => value !== undefined && Number.isFinite(value) && value >= 0
  if (isPrice(input) && isPrice(output) && (cachedInput === undefined || isPrice(cachedInput)))
    return { input: input!, output: output!, ...(cachedInput !== undefined && { cachedInput }) }
  throw new TrainError(
    'CONFIG_INVALID',
    `--price ${text} is no price; write INPUT,OUTPUT in US dollars for a million tokens, such as 0.25,2.`,
  )
}
