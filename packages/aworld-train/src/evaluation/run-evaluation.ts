import { resolve } from 'node:path'
import type { EvaluationWithResults } from '@aworld-train/core'
import {
  type EvaluationPlan,
  evaluateAgent,
  type FinishedEvaluation,
  findEvaluation,
  firstFailure,
  type RunOptions,
  readEvaluation,
  requirePairs,
  rescoreEvaluation,
} from '@aworld-train/training'
import { progressLines } from '../progress-lines.ts'
import { type EvaluationOptions, planEvaluation } from './plan-evaluation.ts'
import { noModelName } from './planned-models.ts'

interface RunPlaces extends Pick<RunOptions, 'fresh' | 'onEvent'> {
  /** Parent folder of runs. Default: `runs`. */
  readonly runPath?: string | undefined
}

export interface RunEvaluationOptions extends EvaluationOptions, RunPlaces, Pick<RunOptions, 'resume'> {
  /** An evaluation to compare with, task by task: its path or name, or `last` for the newest finished one of this name. */
  readonly compare?: string | undefined
  /** Whether the rollouts of the resumed run that failed run again. Default `false`. */
  readonly againFailed?: boolean | undefined
}

/**
 * Runs an agent over a dataset with a model, as `aworld-train eval` does. The newest unfinished evaluation of equal agent, tasks, model,
 * sampling and reward goes on. Rejects with CONFIG_INVALID for every problem at once, and with EVALUATION_FAILED if every rollout failed.
 */
export async function runEvaluation(
  options: RunEvaluationOptions,
  signal: AbortSignal = new AbortController().signal,
): Promise<EvaluationWithResults> {
  const { runPath = 'runs', fresh, resume, onEvent = toStandardError, compare, againFailed } = options
  const plan = await planEvaluation(options, signal)
  const against = compare === undefined ? undefined : await toCompareWith(compare, plan, runPath)
  return await unwrapped(() => evaluateAgent(plan, { runPath, signal, options: { fresh, resume, onEvent }, against, againFailed }))
}

export interface RescoreOptions extends EvaluationOptions, RunPlaces {
  /** Path of the evaluation whose episodes are scored. */
  readonly from: string
}

/** Scores the episodes of an evaluation with another reward, in a new run that is compared with it. Neither agent nor model is asked. */
export async function rescoreRun(
  options: RescoreOptions,
  signal: AbortSignal = new AbortController().signal,
): Promise<EvaluationWithResults> {
  const { runPath = 'runs', fresh, onEvent = toStandardError } = options
  const from = readEvaluation(resolve(options.from))
  // Its model need not be there any more.
  const { agent, dataset, rewardFunc, config, samples, seed, name, kindKey, concurrency, baseDirectory, command } = options
  const scored = { agent, dataset, rewardFunc, config, samples, seed, name, kindKey, concurrency, baseDirectory, command }
  const plan = await planEvaluation({ ...scored, model: noModelName }, signal)
  const model = { ...plan.model, identity: from.report.model, hasPrice: from.report.cost !== null }
  return await unwrapped(() => rescoreEvaluation({ ...plan, model }, { runPath, signal, options: { fresh, onEvent }, from }))
}

const toStandardError = progressLines((line) => void process.stderr.write(`${line}\n`))

/** The evaluation that a finished one will be compared with. Throws CONFIG_INVALID before anything runs if their tasks do not pair. */
async function toCompareWith(named: string, { name, dataset }: EvaluationPlan, runPath: string): Promise<FinishedEvaluation> {
  const found = readEvaluation(findEvaluation(named, { runPath, finishedAs: name }))
  requirePairs(dataset.tasks, found)
  return found
}

async function unwrapped<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw firstFailure(error)
  }
}
