import {
  type Episode,
  type EvaluationResult,
  hasOwnLoss,
  isFailed,
  isInfrastructureFailure,
  isUnscored,
  maskedTokens,
  type PolicyLearner,
  type PolicyLossRequest,
  type RolloutRequest,
  TrainError,
  type TrainingTask,
  toEndedRollout,
  toTrainingSamples,
  type UpdateMetrics,
  type UpdateRequest,
  updateWithLoss,
} from '@aworld-train/core'
import type { TrainingSettings } from '../config/local-config.ts'
import { groupProblems } from '../config/own-config.ts'
import { kindOf } from '../dataset/task-column.ts'
import { checkLogprobs } from './check-logprobs.ts'
import { toLimits } from './group-requests.ts'
import { sampledTokensOf } from './loop-state.ts'
import { roleMetrics } from './role-metrics.ts'
import { runEvaluation } from './run-evaluation.ts'
import { RunRecord, type RunRecordOptions } from './run-record.ts'
import { createSelectedSamples, type SelectedTokens } from './selected-samples.ts'
import type { SelfDrivenResult } from './self-driven-options.ts'
import { type BatchRow, rowsOf, rowsOfUntrained, toStepSamples } from './step-samples.ts'
import { sampleKey } from './training-sample.ts'
import { summarizeUpdates } from './update-policy.ts'
import { createWork } from './work.ts'

export interface OpenLoopOptions extends RunRecordOptions {
  readonly seed: number
  /** Called before the rollouts of a call start. Their keys begin with `phase` and a slash. */
  readonly onRollouts?: ((phase: string, rollouts: number) => void) | undefined
}

export interface RolloutOptions {
  /** Rollouts of each task; `training.samplesPerPrompt` by default. */
  readonly samples?: number | undefined
  /**
   * Split of the rollouts, which is displayed and kept with each episode; `train` by default. The reward curve consists of the split
   * `train`.
   */
  readonly split?: string | undefined
}

/**
 * A run whose steps its caller makes. A step lasts until a `publish` of its learner, which commits it. When a later process of the run
 * reaches a committed step, it uses the recorded episodes and repeats the updates.
 */
export interface OpenLoop {
  readonly learner: PolicyLearner
  /** Rejects with TRAINER_EMPTY_BATCH if all failed. The next process of the run tries them anew. */
  rollout(tasks: readonly TrainingTask[], options?: RolloutOptions): Promise<Episode[]>
  /** Rejects with ROLLOUT_CONFLICT for a name that this process has used. */
  evaluate(tasks: readonly TrainingTask[], name: string): Promise<EvaluationResult>
  /** Loads the newest checkpoint and resolves to its step, or to 0 if there is none. */
  restore(): Promise<number>
  result(status: SelfDrivenResult['status']): SelfDrivenResult
}

/** A step that is not committed yet. */
interface OpenStep {
  readonly step: number
  readonly startedAt: number
  /** Number of calls of `rollout`. */
  calls: number
  readonly episodes: Episode[]
  readonly updates: UpdateMetrics[]
  readonly rollouts: Set<string>
  readonly rows: BatchRow[]
  trainedTokens: number
  rolloutMs: number
  updateMs: number
  difference: number | null
  /** The logprobs of the loss when it first trained a sample, by `sampleKey`. */
  readonly logprobs: Map<string, Float32Array>
}

/** Distance between the seeds of two calls of one step. No run has as many steps. */
const seedsOfCall = 2 ** 20
/** The key of the state that counts, by phase, how often all rollouts of a call failed. */
const givenUpKey = 'rollouts-given-up'

export function createOpenLoop(options: OpenLoopOptions): OpenLoop {
  const { learner, store, config, seed } = options
  const { training, sampling, evaluation } = config
  const [problem] = groupProblems(training, 'the trainer asks for its groups itself')
  if (problem !== undefined) throw new TrainError('CONFIG_INVALID', problem)
  const record = new RunRecord(options)
  const { committed, policy, state, checkpoints, emit } = record
  const limits = toLimits(config.limits)
  const selectedSamples = createSelectedSamples()
  const trained = new Set(store.steps().flatMap((step) => step.rollouts))
  const givenUp = { ...(store.getState(givenUpKey) as Record<string, number> | null | undefined) }
  const evaluated = new Set<string>()
  const sampled = createWork()
  let done = 0
  let current: OpenStep | null = null
  /** Whether the learner has weights that do not sample yet. */
  let isAhead = false

  const step = (): OpenStep => {
    current ??= {
      step: done + 1,
      startedAt: performance.now(),
      calls: 0,
      episodes: [],
      updates: [],
      rollouts: new Set(),
      rows: [],
      trainedTokens: 0,
      rolloutMs: 0,
      updateMs: 0,
      difference: null,
      logprobs: new Map(),
    }
    return current
  }

  async function rollout(
    tasks: readonly TrainingTask[],
    { samples = training.samplesPerPrompt, split = 'train' }: RolloutOptions,
  ): Promise<Episode[]> {
    const openStep = step()
    const call = openStep.calls++
    const isRepeated = openStep.step <= committed
    const place = call === 0 ? `rollout ${openStep.step}` : `rollout ${openStep.step}-${call + 1}`
    const phaseOf = (attempts: number) => (attempts === 0 ? place : `${place}.${attempts}`)
    const requestsOf = (phase: string): RolloutRequest[] =>
      tasks.flatMap((task, position) =>
        Array.from({ length: samples }, (_, sample) => ({
          version: 1 as const,
          key: `${phase}/${position}/${sample}`,
          task,
          group: `${phase}/${position}`,
          sample,
          split,
          step: openStep.step,
          kind: kindOf(task, evaluation.kindKey),
          policy,
          sampling: { ...sampling, stop: [], seed: seed + openStep.step + call * seedsOfCall },
          limits,
        })),
      )
    const attempts = givenUp[place] ?? 0
    if (!isRepeated) for (let attempt = 0; attempt < attempts; attempt++) countGivenUp(requestsOf(phaseOf(attempt)))
    const requests = requestsOf(phaseOf(attempts))
    const startedAt = performance.now()
    if (!isRepeated) options.onRollouts?.(phaseOf(attempts), requests.length)
    const episodes = isRepeated ? recorded(openStep.step, requests) : await state.timed('rollout', () => record.rollOut(requests))
    openStep.rolloutMs += performance.now() - startedAt
    count(openStep, requests, episodes, isRepeated)
    if (!isRepeated) {
      try {
        record.checkRollouts(openStep.step, episodes)
      } catch (error) {
        givenUp[place] = attempts + 1
        await store.setState(givenUpKey, givenUp)
        throw error
      }
    }
    if (split === 'train') openStep.episodes.push(...episodes)
    await check(openStep, episodes, isRepeated)
    return episodes
  }

  /** The episodes of a committed step. */
  function recorded(number: number, requests: readonly RolloutRequest[]): Episode[] {
    return requests.map(({ key, task }) => {
      const episode = store.episode(key)
      if (episode?.taskId === task.id) return episode
      throw new TrainError(
        'STORE_CONFLICT',
        `Step ${number} of run ${store.path} was made with other rollouts than the trainer asks for now ("${key}" of task "${task.id}"). A trainer that is resumed does the same things in the same order; start a new run with --new.`,
      )
    })
  }

  /** Counts the tokens of rollouts that an earlier process of the run gave up. */
  function countGivenUp(requests: readonly RolloutRequest[]): void {
    const episodes = requests.flatMap(({ key }) => store.episode(key) ?? [])
    for (const episode of episodes) {
      state.tokens.addRecorded(episode)
      const { untrainedTurns } = toTrainingSamples(episode, { truncatedSampling: 'accept' })
      state.tokens.addRows(rowsOfUntrained(episode.rollout, untrainedTurns))
    }
    state.addEpisodes(episodes)
  }

  /** Counts the tokens of a step. Trainable tokens count as unselected until an update has trained them. */
  function count(openStep: OpenStep, requests: readonly RolloutRequest[], episodes: readonly Episode[], isRepeated: boolean): void {
    const groups = Map.groupBy(episodes.keys(), (index) => requests[index]!.group)
    for (const indices of groups.values()) {
      const assemblies = indices.map((index) => toTrainingSamples(episodes[index]!, { truncatedSampling: 'accept' }))
      const rewards = assemblies.flatMap(({ samples: [first] }) => (first ? [first.reward] : []))
      const withVariance = new Set(rewards).size > 1
      for (const [i, { samples, untrained, untrainedTurns, sampled: tokens }] of assemblies.entries()) {
        const rows = rowsOfUntrained(episodes[indices[i]!]!.rollout, untrainedTurns)
        openStep.rows.push(...rows)
        selectedSamples.hand(samples, withVariance)
        if (isRepeated) continue
        state.tokens.addRows(rows)
        for (const sample of samples) state.tokens.addUntrained(sample.policy, maskedTokens(sample), 'unselected-by-trainer')
        if (withVariance) state.tokens.addVarianceGroup({ sampled: tokens - (untrained['frozen-policy'] ?? 0), trained: 0 })
      }
    }
  }

  /** Recomputes some logprobs if the learner still has the weights that sampled. */
  async function check(openStep: OpenStep, episodes: readonly Episode[], isRepeated: boolean): Promise<void> {
    if (isAhead) return
    const samples = episodes.flatMap((episode) => toTrainingSamples(episode, { truncatedSampling: 'accept' }).samples)
    const { logprobCheck } = training
    try {
      openStep.difference = await state.timed('check', () =>
        checkLogprobs(learner, samples, { ...logprobCheck, temperature: sampling.temperature }),
      )
    } catch (error) {
      if (!isRepeated) throw error
      throw new TrainError(
        'POLICY_LOGPROB_MISMATCH',
        `The updates before step ${openStep.step} of run ${store.path} come out otherwise than when they were first made. A trainer that is resumed does the same things in the same order; start a new run with --new.`,
        { cause: error },
      )
    }
  }

  async function update(request: UpdateRequest | PolicyLossRequest): Promise<UpdateMetrics> {
    const openStep = step()
    isAhead = true
    const startedAt = performance.now()
    const metrics = await state.timed('update', () => (hasOwnLoss(request) ? updateWithLoss(learner, request) : learner.update(request)))
    const parts = Map.groupBy(request.samples, ({ policy: name }) => name)
    for (const [name, own] of parts) {
      const selected = selectedSamples.take(own)
      // Of several policies, the learner counts all tokens as one.
      const trainedTokens = parts.size === 1 ? metrics.trainedTokens : own.reduce((sum, sample) => sum + maskedTokens(sample), 0)
      countTrained(openStep, name, trainedTokens, selected)
    }
    for (const [i, row] of metrics.logprobs?.entries() ?? []) {
      const key = sampleKey(request.samples[i]!)
      if (!openStep.logprobs.has(key)) openStep.logprobs.set(key, row)
    }
    openStep.updateMs += performance.now() - startedAt
    openStep.updates.push(metrics)
    return metrics
  }

  function countTrained(openStep: OpenStep, name: string, trainedTokens: number, selected: SelectedTokens): void {
    const { tokens, withVariance, others, samples } = selected
    openStep.rows.push(...rowsOf(samples))
    openStep.trainedTokens += trainedTokens - others
    for (const { provenance } of samples) if (!trained.has(provenance.rollout)) openStep.rollouts.add(provenance.rollout)
    if (openStep.step <= committed) return
    state.tokens.addTrained(name, trainedTokens - others)
    state.tokens.addUntrained(name, -tokens, 'unselected-by-trainer')
    state.tokens.addVarianceGroup({ sampled: 0, trained: withVariance })
  }

  /** Ends the step, with all its rollouts. */
  async function publish(): Promise<number> {
    await sampled.settled()
    const weightVersion = await state.timed('publish', () => record.publish())
    isAhead = false
    if (current === null) return weightVersion
    const ended = current
    current = null
    done = ended.step
    if (done <= committed) {
      emit({ type: 'phase-progress', at: Date.now(), phase: 'resume', done, total: committed, metrics: {} })
      return weightVersion
    }
    for (const rollout of ended.rollouts) trained.add(rollout)
    const { startedAt, rollouts, rows, logprobs } = ended
    const samples = toStepSamples(done, rows, logprobs)
    await record.commit({
      step: done,
      steps: 0,
      startedAt,
      weightVersion,
      rollouts: [...rollouts],
      metrics: metricsOf(ended, training),
      samples,
    })
    return weightVersion
  }

  async function evaluate(tasks: readonly TrainingTask[], name: string): Promise<EvaluationResult> {
    const earlier = state.evaluations[name]
    if (earlier) return earlier
    if (tasks.length === 0)
      throw new TrainError('DATASET_INVALID', `The evaluation "${name}" has no tasks; name a test set, or leave the evaluation out.`)
    const { temperature, topP, topK, samplesPerPrompt, kindKey } = evaluation
    const plan = {
      name,
      split: 'test',
      step: done,
      tasks,
      sampling: { temperature, topP, topK, maxTokens: sampling.maxTokens, stop: [], seed },
      samplesPerPrompt,
      policy,
      limits,
      kindKey,
    }
    const { logprobCheck } = training
    return await runEvaluation({ record, learner, logprobCheck: isAhead ? { ...logprobCheck, tokens: 0 } : logprobCheck }, plan)
  }

  return {
    learner: {
      update,
      publish,
      logprobs: (sequences, temperature, policies) => learner.logprobs(sequences, temperature, policies),
      save: (directory) => learner.save(directory),
      load: (directory, agreed) => {
        isAhead = true
        return learner.load(directory, agreed)
      },
      resetOptimizer: () => learner.resetOptimizer(),
    },
    rollout: (tasks, rolloutOptions = {}) => sampled.run(() => rollout(tasks, rolloutOptions)),
    evaluate(tasks, name) {
      if (evaluated.has(name)) {
        const message = `The evaluation "${name}" was made already, and its result is kept under that name; give each evaluation of a run a name of its own, such as "${name}-2".`
        return Promise.reject(new TrainError('ROLLOUT_CONFLICT', message, { details: { name } }))
      }
      evaluated.add(name)
      return sampled.run(async () => {
        try {
          return await evaluate(tasks, name)
        } catch (error) {
          evaluated.delete(name)
          throw error
        }
      })
    },
    async restore() {
      if (current !== null || done > 0)
        throw new TrainError('CONFIG_INVALID', 'restore() comes before the first rollout and the first update; call it there.')
      const from = (await state.timed('resume', () => checkpoints.restore(committed))) ?? 0
      if (from > 0) await record.publish()
      done = from
      return from
    },
    result: (status) => record.result(status),
  }
}

function metricsOf(
  { episodes, updates, trainedTokens, rolloutMs, updateMs, difference }: OpenStep,
  { ownReward }: Pick<TrainingSettings, 'ownReward'>,
): Record<string, number> {
  const ended = episodes.map(toEndedRollout)
  const outcomes = ended.filter((episode) => !isInfrastructureFailure(episode) && !isUnscored(episode))
  const rewards = outcomes.map(({ reward }) => reward ?? 0)
  return {
    ...(rewards.length > 0 && { rewardMean: rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length }),
    rollouts: episodes.length,
    failedEpisodes: ended.filter(isFailed).length,
    sampledTokens: episodes.reduce((sum, episode) => sum + sampledTokensOf(episode), 0),
    trainedTokens,
    ...(updates.length > 0 && summarizeUpdates(updates)),
    ...roleMetrics(episodes, { ownReward }),
    updates: updates.length,
    ...(difference !== null && { maxLogprobDifference: difference }),
    rolloutMs,
    updateMs,
  }
}
