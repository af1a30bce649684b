import type { RolloutLimits, Sampling } from '@aworld-train/core'
import type { TrainingSettings } from '../config/local-config.ts'
import type { EvaluationPlan } from './evaluate.ts'
import { runEvaluation } from './run-evaluation.ts'
import type { RunRecord } from './run-record.ts'
import type { SelfDrivenOptions } from './self-driven-options.ts'

/** Seeds of evaluations. Training has 0, so no evaluation repeats random numbers of training. */
const evaluationSeeds = { test: 1, validation: 2 } as const

/** The evaluations of a run. An evaluation that an earlier process of the run finished is not repeated. */
export interface Evaluations {
  /** Evaluates the test tasks with the run's sampling, and also greedily if the configuration asks for it. */
  test(name: 'before' | 'after', step: number): Promise<void>
  /** Evaluates the validation tasks. The best step so far keeps its checkpoint. */
  validate(step: number): Promise<void>
}

export interface EvaluationsContext {
  readonly options: SelfDrivenOptions
  readonly limits: RolloutLimits
  readonly training: TrainingSettings
  readonly record: RunRecord
}

export function createEvaluations({ options, limits, training, record }: EvaluationsContext): Evaluations {
  const { evaluation, sampling } = options.config
  const { policy, state, checkpoints, emit } = record
  const context = { record, learner: options.learner, logprobCheck: training.logprobCheck }

  function plan(name: string, split: 'test' | 'validation', step: number, isGreedy = false): EvaluationPlan {
    return {
      name,
      split,
      step,
      tasks: options.evaluation?.[split] ?? [],
      policy,
      limits,
      kindKey: evaluation.kindKey,
      samplesPerPrompt: isGreedy ? 1 : evaluation.samplesPerPrompt,
      sampling: samplingOf(isGreedy, evaluationSeeds[split]),
    }
  }

  const samplingOf = (isGreedy: boolean, seed: number): Sampling => ({
    temperature: isGreedy ? 0 : evaluation.temperature,
    topP: isGreedy ? 1 : evaluation.topP,
    topK: isGreedy ? 0 : evaluation.topK,
    maxTokens: sampling.maxTokens,
    stop: [],
    seed,
  })

  return {
    async test(name, step) {
      const plans = [plan(name, 'test', step), ...(evaluation.greedy ? [plan(`greedy-${name}`, 'test', step, true)] : [])]
      for (const each of plans) {
        if (each.tasks.length === 0 || state.evaluations[each.name]) continue
        await runEvaluation(context, each)
        await record.save(step)
      }
    },
    async validate(step) {
      const each = plan(`validation-${step}`, 'validation', step)
      if (each.tasks.length === 0 || state.evaluations[each.name]) return
      const { reward } = await runEvaluation(context, each)
      if (state.best === null || reward > state.best.reward) {
        const checkpoint = await state.timed('checkpoint', () => checkpoints.saveBest(step, state.best?.checkpoint ?? null))
        state.best = { step, reward, checkpoint }
        emit({ type: 'checkpoint-saved', at: Date.now(), step, path: checkpoint, best: true })
      }
      await record.save(step)
    },
  }
}
