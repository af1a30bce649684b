import { toTrainingSamples } from '@aworld-train/core'
import type { Episode, EvaluationResult, RolloutLimits, RolloutRequest, RunEvent, Sampling } from '@aworld-train/protocol'
import type { TrainingSettings } from '../config/local-config.ts'
import { isFailed } from './assemble-batch.ts'
import { checkLogprobs } from './check-logprobs.ts'
import type { Checkpoints } from './checkpoints.ts'
import { type EvaluationPlan, evaluationMetrics, evaluationRequests, summarizeEvaluation } from './evaluate.ts'
import { type LoopState, sampledTokensOf } from './loop-state.ts'
import type { SelfDrivenOptions } from './self-driven-options.ts'

/** Seeds of evaluations; training has 0, so that no evaluation repeats random numbers of training. */
const evaluationSeeds = { test: 1, validation: 2 } as const

/** The evaluations of a run. One that an earlier process of the run finished is not made again. */
export interface Evaluations {
  /** On the held-out tasks, and greedy beside. */
  test(name: 'before' | 'after', step: number): Promise<void>
  /** On the validation tasks; the best step so far keeps its checkpoint. */
  validate(step: number): Promise<void>
}

export interface EvaluationsContext {
  readonly options: SelfDrivenOptions
  readonly policy: string
  readonly limits: RolloutLimits
  readonly training: TrainingSettings
  readonly state: LoopState
  readonly checkpoints: Checkpoints
  readonly rollOut: (requests: readonly RolloutRequest[]) => Promise<Episode[]>
  readonly save: (step: number) => Promise<void>
  readonly emit: (event: RunEvent) => void
}

export function createEvaluations({
  options,
  policy,
  limits,
  training,
  state,
  checkpoints,
  rollOut,
  save,
  emit,
}: EvaluationsContext): Evaluations {
  const { evaluation, sampling } = options.config

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

  async function evaluate(each: EvaluationPlan): Promise<EvaluationResult> {
    const requests = evaluationRequests(each)
    emit({ type: 'evaluation-start', at: Date.now(), name: each.name, rollouts: requests.length })
    const episodes = await state.timed('evaluation', () => rollOut(requests))
    for (const episode of episodes) state.ledger.add('evaluation', sampledTokensOf(episode))
    const difference = await state.timed('check', () => check(each, episodes))
    const result = summarizeEvaluation(each, episodes)
    state.evaluations[each.name] = result
    const metrics = evaluationMetrics(result)
    emit({
      type: 'evaluation-end',
      at: Date.now(),
      name: each.name,
      step: each.step,
      metrics: difference === null ? metrics : { ...metrics, maxLogprobDifference: difference },
    })
    return result
  }

  /** The last weights of a run are sampled here only. */
  async function check({ sampling: { temperature } }: EvaluationPlan, episodes: readonly Episode[]): Promise<number | null> {
    const some = episodes.filter((episode) => !isFailed(episode)).slice(0, training.logprobCheck.tokens)
    const samples = some.flatMap((episode) => toTrainingSamples(episode, { policy, truncatedSampling: 'accept' }).samples)
    return await checkLogprobs(options.learner, samples, { ...training.logprobCheck, temperature })
  }

  return {
    async test(name, step) {
      const plans = [plan(name, 'test', step), ...(evaluation.greedy ? [plan(`greedy-${name}`, 'test', step, true)] : [])]
      for (const each of plans) {
        if (each.tasks.length === 0 || state.evaluations[each.name]) continue
        await evaluate(each)
        await save(step)
      }
    },
    async validate(step) {
      const each = plan(`validation-${step}`, 'validation', step)
      if (each.tasks.length === 0 || state.evaluations[each.name]) return
      const { reward } = await evaluate(each)
      if (state.best === null || reward > state.best.reward) {
        const checkpoint = await state.timed('checkpoint', () => checkpoints.saveBest(step, state.best?.checkpoint ?? null))
        state.best = { step, reward, checkpoint }
        emit({ type: 'checkpoint-saved', at: Date.now(), step, path: checkpoint, best: true })
      }
      await save(step)
    },
  }
}
