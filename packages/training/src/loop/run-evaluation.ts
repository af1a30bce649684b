import { type Episode, type EvaluationResult, isFailed, type Learner, toEndedRollout, toTrainingSamples } from '@aworld-train/core'
import type { TrainingSettings } from '../config/local-config.ts'
import { checkLogprobs } from './check-logprobs.ts'
import {
  type EvaluationPlan,
  evaluationMetrics,
  evaluationRequests,
  requireOutcome,
  requireResults,
  summarizeEvaluation,
} from './evaluate.ts'
import type { RunRecord } from './run-record.ts'

export interface RunEvaluationContext {
  readonly record: RunRecord
  readonly learner: Learner
  readonly logprobCheck: TrainingSettings['logprobCheck']
}

/** Runs an evaluation, counts its tokens, and keeps its result in the state. */
export async function runEvaluation(
  { record, learner, logprobCheck }: RunEvaluationContext,
  plan: EvaluationPlan,
): Promise<EvaluationResult> {
  const { state, emit } = record
  const requests = evaluationRequests(plan)
  emit({ type: 'evaluation-start', at: Date.now(), name: plan.name, rollouts: requests.length })
  const episodes = await state.timed('evaluation', () => record.rollOut(requests))
  requireOutcome(plan.name, episodes)
  for (const episode of episodes) state.tokens.addEpisode(episode, 'evaluation')
  const difference = await state.timed('check', () => check(episodes))
  const result = summarizeEvaluation(plan, episodes)
  const metrics = evaluationMetrics(result)
  emit({
    type: 'evaluation-end',
    at: Date.now(),
    name: plan.name,
    step: plan.step,
    metrics: difference === null ? metrics : { ...metrics, maxLogprobDifference: difference },
    ...(result.failures.length > 0 && { failures: result.failures }),
  })
  requireResults(result)
  state.evaluations[plan.name] = result
  return result

  /** The last weights of a run sample only here. */
  async function check(all: readonly Episode[]): Promise<number | null> {
    const some = all.filter((episode) => !isFailed(toEndedRollout(episode))).slice(0, logprobCheck.tokens)
    const samples = some.flatMap((episode) => toTrainingSamples(episode, { truncatedSampling: 'accept' }).samples)
    return await checkLogprobs(learner, samples, { ...logprobCheck, temperature: plan.sampling.temperature })
  }
}
