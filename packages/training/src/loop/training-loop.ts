import {
  countFailures,
  describeFailure,
  type Episode,
  type StepRecord,
  TrainError,
  type TrainingSample,
  toEndedRollout,
} from '@aworld-train/core'
import type { TrainingSettings } from '../config/local-config.ts'
import { assembleBatch, type Batch } from './assemble-batch.ts'
import { checkLogprobs } from './check-logprobs.ts'
import { createEvaluations, type Evaluations } from './evaluations.ts'
import { groupId, groupRequests, toLimits } from './group-requests.ts'
import type { DrawnGroup } from './group-stream.ts'
import { learningRateAt } from './learning-rate.ts'
import { createRolloutGroups, type FinishedGroup } from './rollout-groups.ts'
import { RunRecord } from './run-record.ts'
import type { SelfDrivenOptions, SelfDrivenResult } from './self-driven-options.ts'
import { toStepSamples } from './step-samples.ts'
import { type UpdateSummary, updatePolicy } from './update-policy.ts'

/** The parts of a run in the order that `trainSelfDriven` calls them. */
export interface TrainingLoop {
  /** Restores the committed state and publishes the weights; resolves to the last committed step. */
  start(): Promise<number>
  trainStep(step: number): Promise<void>
  /** Ends all work that is under way, after a stop or an error. */
  stop(): Promise<void>
  readonly evaluations: Evaluations
  result(status: SelfDrivenResult['status']): SelfDrivenResult
}

export function createTrainingLoop(options: SelfDrivenOptions, steps: number): TrainingLoop {
  const { learner, engine, store, config } = options
  const { sampling } = config
  const training = withWarmup(config.training, steps)
  const record = new RunRecord(options)
  const { committed, policy, state, checkpoints, emit } = record
  const limits = toLimits(config.limits)

  const requests = { tasks: options.tasks, seed: options.seed, training, sampling, limits, policy, kindKey: config.evaluation.kindKey }
  const groups = createRolloutGroups({
    settings: training,
    steps,
    slots: () => options.runner.slots?.() ?? config.concurrency,
    trained: state.durations ?? undefined,
    requestsOf: (drawn) => groupRequests(drawn, requests),
    record,
    store,
    isTeaching: (episodes) => assembleBatch([episodes], training).metrics.groupsWithVariance > 0,
    onEvent: emit,
    signal: options.signal,
  })

  const update = (step: number, batch: Batch) =>
    updatePolicy({
      learner,
      reference: options.reference,
      groups: batch.groups,
      settings: training,
      loss: options.loss,
      learningRate: learningRateAt(step, steps, training),
      temperature: sampling.temperature,
    })

  /** Repeats the updates of a committed step on the episodes that it trained. */
  async function replay(step: StepRecord): Promise<void> {
    if (step.rollouts.length === 0) return
    const episodes = step.rollouts.map((key) => {
      const episode = store.episode(key)
      if (!episode) throw new TrainError('STORE_CORRUPT', `Rollout "${key}" of step ${step.step} is not in ${store.path}; start a new run.`)
      return episode
    })
    const trained = [...Map.groupBy(episodes, ({ group }) => group).values()]
    await update(step.step, assembleBatch(trained, training))
  }

  async function start(): Promise<number> {
    await state.timed('resume', async () => {
      if (committed === 0) await learner.resetOptimizer()
      const from = (await checkpoints.restore(committed)) ?? (await begin())
      for (const step of store.steps()) if (step.step > from) await replay(step)
    })
    await record.publish()
    return committed
  }

  /** Begins a run with the learner as it is. */
  async function begin(): Promise<number> {
    if (committed > 0) {
      const message = `Run ${store.path} has no checkpoint at or before step ${committed}; start a new run.`
      throw new TrainError('CHECKPOINT_CORRUPT', message)
    }
    await checkpoints.save(0)
    return 0
  }

  async function trainStep(step: number): Promise<void> {
    const startedAt = performance.now()
    emit({ type: 'step-start', at: Date.now(), step, steps })
    const taken = await state.timed('rollout', () => groups.take(step))
    const episodeGroups = taken.map(({ episodes }) => episodes)
    const rolledOutAt = performance.now()
    const batch = await state.timed('batch', async () => assembleBatch(episodeGroups, training))
    record.count(episodeGroups.flat())
    state.tokens.addRows(batch.rows)
    await giveUpIfEmpty(step, taken)
    state.tokens.addVarianceGroup(batch.withVariance)
    const samples = batch.groups.flat()
    const difference = await state.timed('check', () => checkSampled(samples))
    const learningRate = learningRateAt(step, steps, training)
    const checkedAt = performance.now()
    const updated = samples.length === 0 ? null : await state.timed('update', () => update(step, batch))
    const updatedAt = performance.now()
    if (!updated) record.warn('BATCH_WITHOUT_GRADIENT', withoutGradient(step, batch, episodeGroups.flat()))
    else if (updated.metrics.gradNorm === 0)
      record.warn('BATCH_WITHOUT_GRADIENT', `Step ${step} trained nothing: every derivative of its loss is 0.`)
    else if (batch.metrics.groupsOfOne > 0) record.warn('GROUP_OF_ONE', groupsOfOne(step, batch, episodeGroups.flat()))
    if (batch.metrics.groupsWithVariance < (training.teachingPrompts ?? 0))
      record.warnOnce('STEP_NOT_FILLED', notFilled(step, batch, training))
    for (const [name, { trainedTokens }] of updated?.byPolicy ?? []) state.tokens.addTrained(name, trainedTokens)
    const weightVersion = updated ? await state.timed('publish', () => record.publish()) : engine.weightVersion()
    groups.clock.train(episodeGroups.flat().map(({ timing }) => timing))
    const metrics = {
      ...batch.metrics,
      ...batch.roleMetrics,
      sampledTokens: batch.sampledTokens,
      trainedTokens: updated?.trainedTokens ?? 0,
      ...updated?.metrics,
      ...(options.policies && updated && metricsByPolicy(updated)),
      updates: updated?.updates ?? 0,
      learningRate,
      ...(difference === null ? {} : { maxLogprobDifference: difference }),
      ...stalenessOf(step, taken),
      ...(training.teachingPrompts !== null && {
        groupsDrawn: [...taken, ...groups.left()].filter(({ admitted }) => admitted === step).length,
      }),
      ...(training.firstSamples !== null && earlyEnds(taken, training.samplesPerPrompt)),
      ...defined({ truncatedRatios: updated?.truncatedRatios, durationRatio: groups.clock.durationRatio() }),
      slotsUsed: groups.clock.slotsUsed(),
      rolloutMs: rolledOutAt - startedAt,
      updateMs: updatedAt - checkedAt,
    }
    const rollouts = [...new Set(samples.map(({ provenance }) => provenance.rollout))]
    const rows = toStepSamples(step, batch.rows, updated?.logprobs)
    state.durations = groups.clock.trained()
    const carriedGroups = groups.left().map((group) => groupId(group, training.promptsPerStep))
    await record.commit({ step, steps, weightVersion, rollouts, carriedGroups, metrics, startedAt, samples: rows })
  }

  /**
   * Checks sampled logprobs. Without staleness all samples are of the current weights. A version is valid in this process only, because an
   * earlier process may have given it to other weights.
   */
  async function checkSampled(samples: readonly TrainingSample[]): Promise<number | null> {
    const check = { ...training.logprobCheck, temperature: sampling.temperature }
    if (training.maxStaleness === 0) return await checkLogprobs(learner, samples, check)
    const own = samples.filter(({ provenance }) => !record.isOfEarlierProcess(provenance.rollout))
    return await checkLogprobs(learner, own, { ...check, weightVersion: engine.weightVersion() })
  }

  /** Gives the step up if all its rollouts failed. The next start of the run then tries it with new ones. */
  async function giveUpIfEmpty(step: number, taken: readonly FinishedGroup[]): Promise<void> {
    try {
      const episodes = taken.flatMap((group) => group.episodes)
      record.checkRollouts(step, episodes)
    } catch (error) {
      // Rollouts that an outage ended run again with the same draw.
      if ((error as TrainError).details?.['isOutage']) throw error
      await groups.redraw()
      await record.save(step - 1)
      throw error
    }
  }

  async function stop(): Promise<void> {
    await groups.close()
    if (options.signal.aborted) record.countStopped()
  }

  const evaluations = createEvaluations({ options, limits, training, record })
  return { start, trainStep, stop, evaluations, result: (status) => record.result(status) }
}

const metricsByPolicy = ({ byPolicy }: UpdateSummary): Record<string, number> =>
  Object.fromEntries(
    [...byPolicy].flatMap(([policy, metrics]) =>
      Object.entries(defined(metrics)).map(([name, value]) => [`policy/${policy}/${name}`, value]),
    ),
  )

/** Numbers of steps between the draw of a step's groups and the step. */
function stalenessOf(step: number, groups: readonly DrawnGroup[]): { readonly staleness: number; readonly mostStaleness: number } {
  const steps = groups.map(({ admitted }) => step - admitted)
  return { staleness: steps.reduce((sum, each) => sum + each, 0) / steps.length, mostStaleness: Math.max(...steps) }
}

/** Counts of groups whose first samples were all solved, and of their rollouts that were not started. */
function earlyEnds(groups: readonly FinishedGroup[], samplesPerPrompt: number) {
  const notStarted = groups.map(({ episodes }) => samplesPerPrompt - episodes.length).filter((count) => count > 0)
  return { groupsSolved: notStarted.length, notStarted: notStarted.reduce((sum, count) => sum + count, 0) }
}

const defined = (metrics: Readonly<Record<string, number | null | undefined>>): Record<string, number> =>
  Object.fromEntries(Object.entries(metrics).flatMap(([name, value]) => (value == null ? [] : [[name, value]])))

/** Converts a warm-up given as a fraction to steps. */
function withWarmup(training: TrainingSettings, steps: number): TrainingSettings {
  return training.warmupFraction === null ? training : { ...training, warmupSteps: Math.round(training.warmupFraction * steps) }
}

function withoutGradient(step: number, { metrics }: Batch, episodes: readonly Episode[]): string {
  const { groups, zeroVarianceGroups, groupsOfOne: ones } = metrics
  return (
    `Step ${step} trained nothing: of ${groups} groups ${zeroVarianceGroups} have equal rewards and ${ones} a single scored episode. ` +
    remedyOf(episodes, 'Use more samples per prompt, or tasks that the policy solves sometimes.')
  )
}

const groupsOfOne = (step: number, { metrics }: Batch, episodes: readonly Episode[]) =>
  `${metrics.groupsOfOne} of ${metrics.groups} groups of step ${step} have a single scored episode, which has no advantage. ` +
  remedyOf(episodes, 'Use at least 2 samples per prompt.')

const notFilled = (step: number, { metrics }: Batch, { teachingPrompts }: TrainingSettings) =>
  `Of the ${metrics.groups} groups of step ${step}, the most that training.maxPrompts allows, ${metrics.groupsWithVariance} teach and not the ${teachingPrompts} of training.teachingPrompts; the step trains those, and so do later ones, of which this is not said again. Take tasks that the policy solves sometimes, or less in training.teachingPrompts.`

/** Adding samples does not remedy failures. */
function remedyOf(episodes: readonly Episode[], otherwise: string): string {
  const failures = countFailures(episodes.map(toEndedRollout))
  if (failures.length === 0) return otherwise
  const failed = failures.reduce((sum, { count }) => sum + count, 0)
  return `${failed} of ${episodes.length} episodes failed; mend their causes first: ${failures.map(describeFailure).join('; ')}`
}
