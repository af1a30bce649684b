import type { EvaluationWithResults } from '@aworld-train/core'
import { evaluateAgent, firstFailure, type RunOptions } from '@aworld-train/training'
import { progressLines } from '../progress-lines.ts'
import { type EvaluationOptions, planEvaluation } from './plan-evaluation.ts'

export interface RunEvaluationOptions extends EvaluationOptions, Pick<RunOptions, 'fresh' | 'resume' | 'onEvent'> {
  /** Parent folder of runs. Default: `runs`. */
  readonly runPath?: string | undefined
}

/**
 * Runs an agent over a dataset with a model, as `aworld-train eval` does. The newest unfinished evaluation of equal agent, tasks, model,
 * sampling and reward goes on. Rejects with CONFIG_INVALID for every problem at once, and with EVALUATION_FAILED if every rollout failed.
 */
export async function runEvaluation(
  options: RunEvaluationOptions,
  signal: AbortSignal = new AbortController().signal,
): Promise<EvaluationWithResults> {
  const { runPath = 'runs', fresh, resume, onEvent = progressLines((line) => void process.stderr.write(`${line}\n`)) } = options
  const plan = await planEvaluation(options)
  try {
    return await evaluateAgent(plan, { runPath, signal, options: { fresh, resume, onEvent } })
  } catch (error) {
    throw firstFailure(error)
  }
}
