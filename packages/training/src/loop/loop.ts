import type { StepRecord } from '@aworld-train/core'
import { type Episode, type RolloutRequest, type RunEvent, TrainError } from '@aworld-train/protocol'
import type { TrainingSettings } from '../config/local-config.ts'
import { assembleBatch, type Batch, isFailed } from './assemble-batch.ts'
import { checkLogprobs } from './check-logprobs.ts'
import { createCheckpoints } from './checkpoints.ts'
import { createEvaluations, type Evaluations } from './evaluations.ts'
import { learningRateAt } from './learning-rate.ts'
import { createLoopState, type SavedLoopState, sampledTokensOf } from './loop-state.ts'
import type { SelfDrivenOptions, SelfDrivenResult } from './self-driven-options.ts'
import { stepRequests, toLimits } from './step-requests.ts'
import { updatePolicy } from './update-policy.ts'

/** The parts of a run in the order that `trainSelfDriven` calls them. */
export interface Loop {
  /** Restores what is committed and publishes the weights; resolves to the last committed step. */
  start(): Promise<number>
  trainStep(step: number): Promise<void>
  readonly evaluations: Evaluations
  result(status: SelfDrivenResult['status']): SelfDrivenResult
}

export function createLoop(options: SelfDrivenOptions, steps: number): Loop {
  const { learner, engine, gateway, runner, store, signal, config } = options
  const { sampling } = config
  const training = withWarmup(config.training, steps)
  const policy = options.policy ?? engine.name
  const emit = (event: RunEvent) => options.onEvent?.(event)
  const warned = new Set<string>()
  const warn = (code: string, message: string) => {
    warned.add(code)
    emit({ type: 'warning-raised', at: Date.now(), code, message })
  }
  const warnOnce = (code: string, message: string | null) => {
    if (message !== null && !warned.has(code)) warn(code, message)
  }
  const checkpoints = createCheckpoints({ learner, store, warn })
  const limits = toLimits(config.limits)
  const sampledAtStart = engine.sampledTokens()
  const supersededAtStart = runner.supersededTokens?.() ?? 0
  const committed = store.steps().at(-1)?.step ?? 0
  const resumed = loadState(committed)
  const state = createLoopState(resumed)
  let lastStep = committed
  let isFirstRollout = true
  let superseded = supersededAtStart
  let lastCommit = resumed ?? state.toSaved(0)

  function loadState(step: number): SavedLoopState | null {
    const saved = store.getState(stateKey(step)) as SavedLoopState | null | undefined
    if (saved) return saved
    if (step === 0) return null
    throw new TrainError('STORE_CORRUPT', `Run ${store.path} has step ${step} but not its accounts; start a new run.`)
  }

  async function save(step: number): Promise<void> {
    const total = runner.supersededTokens?.() ?? 0
    state.ledger.add('superseded-attempt', total - superseded)
    superseded = total
    const saved = state.toSaved(engine.sampledTokens() - sampledAtStart)
    await store.setState(stateKey(step), saved)
    lastCommit = saved
  }

  /** Runs requests. Those at which an earlier process ended are the first of this one; what it had finished comes from the record. */
  async function rollOut(requests: readonly RolloutRequest[]): Promise<Episode[]> {
    signal.throwIfAborted()
    const before = isFirstRollout ? requests.flatMap(({ key }) => store.episode(key) ?? []) : []
    isFirstRollout = false
    const episodes = await runner.runAll(requests, signal)
    signal.throwIfAborted()
    for (const episode of before) state.recordedTokens += sampledTokensOf(episode)
    state.addEpisodes(episodes)
    return episodes
  }

  async function publish(): Promise<number> {
    await gateway?.pause({ drain: true })
    try {
      const weightVersion = await learner.publish()
      // How far sampled and recomputed logprobs differ shows in the next tokens: in the metrics of the next step or evaluation.
      emit({ type: 'weights-updated', at: Date.now(), weightVersion })
      return weightVersion
    } finally {
      gateway?.resume()
    }
  }

  const requestsOf = (step: number) =>
    stepRequests({ tasks: options.tasks, seed: options.seed, step, training, sampling, limits, policy, emptied: state.emptied })

  const assemble = (requests: readonly RolloutRequest[], episodes: readonly Episode[]) => {
    const groups = Object.values(Object.groupBy(episodes.keys(), (i) => requests[i]!.group)) as number[][]
    return assembleBatch(
      groups.map((indices) => indices.map((i) => episodes[i]!)),
      training,
      policy,
    )
  }

  const update = (step: number, batch: Batch) =>
    updatePolicy({
      learner,
      reference: options.reference,
      groups: batch.groups,
      settings: training,
      learningRate: learningRateAt(step, steps, training),
      temperature: sampling.temperature,
    })

  /** Repeats the updates of a committed step on its recorded episodes. */
  async function replay(record: StepRecord): Promise<void> {
    if (record.rollouts.length === 0) return
    const emptied = record.metrics['emptied'] ?? 0
    const requests = stepRequests({
      tasks: options.tasks,
      seed: options.seed,
      step: record.step,
      training,
      sampling,
      limits,
      policy,
      emptied,
    })
    const episodes = requests.map(({ key }) => {
      const episode = store.episode(key)
      if (!episode)
        throw new TrainError('STORE_CORRUPT', `Rollout "${key}" of step ${record.step} is not in ${store.path}; start a new run.`)
      return episode
    })
    await update(record.step, assemble(requests, episodes))
  }

  async function start(): Promise<number> {
    await state.timed('resume', async () => {
      if (committed === 0) await learner.resetOptimizer()
      const from = await checkpoints.restore(committed)
      for (const record of store.steps()) if (record.step > from) await replay(record)
    })
    await publish()
    return committed
  }

  async function trainStep(step: number): Promise<void> {
    const startedAt = performance.now()
    emit({ type: 'step-start', at: Date.now(), step, steps })
    const requests = requestsOf(step)
    const episodes = await state.timed('rollout', () => rollOut(requests))
    const rolledOutAt = performance.now()
    const batch = assemble(requests, episodes)
    state.ledger.merge(batch.untrained)
    if (episodes.every(isFailed)) await refuseEmpty(step, episodes)
    warnOnce('POLICY_CONTEXT_OVERFLOW', overflows(step, episodes))
    state.ledger.addVarianceGroup(batch.withVariance)
    const samples = batch.groups.flat()
    const { temperature } = sampling
    const difference = await state.timed('check', () => checkLogprobs(learner, samples, { ...training.logprobCheck, temperature }))
    const learningRate = learningRateAt(step, steps, training)
    const checkedAt = performance.now()
    const updated = samples.length === 0 ? null : await state.timed('update', () => update(step, batch))
    const updatedAt = performance.now()
    if (!updated) warn('BATCH_WITHOUT_GRADIENT', withoutGradient(step, batch))
    else if (batch.metrics.groupsOfOne > 0) warn('GROUP_OF_ONE', groupsOfOne(step, batch))
    state.trainedTokens += updated?.trainedTokens ?? 0
    const weightVersion = updated ? await state.timed('publish', publish) : engine.weightVersion()
    const due = step === steps || (training.checkpointEvery !== null && step % training.checkpointEvery === 0)
    const checkpoint = due ? await state.timed('checkpoint', () => checkpoints.save(step)) : null
    const { emptied } = state
    state.emptied = 0
    const metrics = {
      ...batch.metrics,
      sampledTokens: batch.sampledTokens,
      trainedTokens: updated?.trainedTokens ?? 0,
      ...updated?.metrics,
      updates: updated?.updates ?? 0,
      learningRate,
      ...(difference === null ? {} : { maxLogprobDifference: difference }),
      ...(emptied === 0 ? {} : { emptied }),
      rolloutMs: rolledOutAt - startedAt,
      updateMs: updatedAt - checkedAt,
      stepMs: performance.now() - startedAt,
    }
    await save(step)
    const rollouts = [...new Set(samples.map(({ provenance }) => provenance.rollout))]
    await store.commitStep({ step, weightVersion, rollouts, metrics, checkpoint })
    lastStep = step
    if (checkpoint) emit({ type: 'checkpoint-saved', at: Date.now(), step, path: checkpoint, best: false })
    emit({ type: 'step-end', at: Date.now(), step, steps, weightVersion, metrics })
  }

  /** Gives the step up, so that the next start of the run tries it with new rollouts. */
  async function refuseEmpty(step: number, episodes: readonly Episode[]): Promise<never> {
    state.emptied++
    await save(step - 1)
    const first = episodes.find(({ error }) => error)?.error
    throw new TrainError(
      episodes.every(hasNoRoom) ? 'POLICY_CONTEXT_OVERFLOW' : 'TRAINER_EMPTY_BATCH',
      `All ${episodes.length} rollouts of step ${step} failed; nothing was trained. The first: ${first ? `${first.code}: ${first.message}` : episodes[0]!.stopReason}`,
      { details: { step, stopReasons: [...new Set(episodes.map(({ stopReason }) => stopReason))] } },
    )
  }

  function result(status: SelfDrivenResult['status']): SelfDrivenResult {
    const { evaluations, ledger, rollouts, episodesByStopReason, best } = lastCommit
    return {
      status,
      steps: lastStep,
      resumedFromStep: resumed ? committed : null,
      before: evaluations['before'] ?? null,
      after: evaluations['after'] ?? null,
      greedyBefore: evaluations['greedy-before'] ?? null,
      greedyAfter: evaluations['greedy-after'] ?? null,
      curve: store.steps().map(({ step, metrics }) => ({ step, reward: metrics['rewardMean'] ?? 0, metrics: { ...metrics } })),
      ledger,
      episodesByStopReason,
      rollouts,
      checkpoints: [...checkpoints.kept(), ...(best ? [best.checkpoint] : [])],
      bestCheckpoint: best?.checkpoint ?? null,
      phasesMs: { ...state.phasesMs },
    }
  }

  const evaluations = createEvaluations({ options, policy, limits, training, state, checkpoints, rollOut, save, emit })
  return { start, trainStep, evaluations, result }
}

/** The warm-up in steps, where it was given as a part of all. */
function withWarmup(training: TrainingSettings, steps: number): TrainingSettings {
  return training.warmupFraction === null ? training : { ...training, warmupSteps: Math.round(training.warmupFraction * steps) }
}

const stateKey = (step: number) => `loop-after-step-${step}`

/** The prompt of the episode filled the context by itself. */
const hasNoRoom = ({ error, reward }: Episode) => error?.code === 'POLICY_CONTEXT_OVERFLOW' && reward === null

function overflows(step: number, episodes: readonly Episode[]): string | null {
  const all = episodes.filter(hasNoRoom)
  const [first] = all
  if (!first) return null
  return `${all.length} of ${episodes.length} rollouts of step ${step} are not trained: the prompt left the model no room to answer. The first, of task "${first.taskId}": ${first.error?.message}`
}

function withoutGradient(step: number, { metrics }: Batch): string {
  const { groups, zeroVarianceGroups, groupsOfOne: ones, failedEpisodes } = metrics
  return (
    `Step ${step} trained nothing: of ${groups} groups ${zeroVarianceGroups} have equal rewards and ${ones} a single scored episode ` +
    `(${failedEpisodes} episodes failed). Use more samples per prompt, or tasks that the policy solves sometimes.`
  )
}

const groupsOfOne = (step: number, { metrics }: Batch) =>
  `${metrics.groupsOfOne} of ${metrics.groups} groups of step ${step} have a single scored episode, which has no advantage; use at least 2 samples per prompt.`
