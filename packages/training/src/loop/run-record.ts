import {
  countFailures,
  describeFailure,
  type Episode,
  type ErrorCode,
  isFailed,
  isInfrastructureFailure,
  type RolloutRequest,
  type RunEvent,
  type StepRecord,
  type StepSample,
  TrainError,
  toEndedRollout,
} from '@aworld-train/core'
import { type Checkpoints, createCheckpoints } from './checkpoints.ts'
import { createLoopState, type LoopState, type SavedLoopState } from './loop-state.ts'
import type { SelfDrivenOptions, SelfDrivenResult } from './self-driven-options.ts'

export type RunRecordOptions = Pick<
  SelfDrivenOptions,
  'learner' | 'engine' | 'policies' | 'gateway' | 'runner' | 'store' | 'config' | 'signal' | 'onEvent' | 'policy'
>

/** The data that commits a step once its updates are made and its weights published. */
export interface StepCommit extends Pick<StepRecord, 'step' | 'weightVersion' | 'rollouts' | 'metrics'> {
  readonly samples: readonly StepSample[]
  readonly carriedGroups?: readonly string[] | undefined
  /** Number of all steps; 0 if it is not known. */
  readonly steps: number
  /** Start of the step, by `performance.now()`. */
  readonly startedAt: number
}

/**
 * The record of a run's rollouts and steps, shared by loops that decide differently what a step is. It continues from what earlier
 * processes of the run committed.
 */
export interface RunRecord {
  /** Last step that earlier processes committed. */
  readonly committed: number
  /** Name of the policy in requests. */
  readonly policy: string
  readonly state: LoopState
  readonly checkpoints: Checkpoints
  emit(event: RunEvent): void
  warn(code: string, message: string): void
  /** Warns unless this process has given the same warning. */
  warnOnce(code: string, message: string): void
  /** Runs requests and counts their episodes. Results of an earlier process come from the record. */
  rollOut(requests: readonly RolloutRequest[]): Promise<Episode[]>
  /** Runs a request without counting its episode. */
  start(request: RolloutRequest, signal: AbortSignal): Promise<Episode>
  /** Counts episodes of requests that were started. */
  count(episodes: readonly Episode[]): void
  /** Whether an earlier process of the run sampled the episode of a started rollout. */
  isOfEarlierProcess(key: string): boolean
  /** Counts the rollouts that a stop found in flight; they must all have ended. */
  countStopped(): void
  /** Throws if the infrastructure failed most rollouts, or if every rollout failed. Warns once if some prompts alone filled the context. */
  checkRollouts(step: number, episodes: readonly Episode[]): void
  /** Switches sampling to the weights of the learner, between two model calls. */
  publish(): Promise<number>
  /** Keeps the accounts under a step. */
  save(step: number): Promise<void>
  /** Keeps the accounts and marks a step as trained, with a checkpoint if one is due. */
  commit(step: StepCommit): Promise<void>
  /** The saved result, also of a run that has not finished. */
  result(status: SelfDrivenResult['status']): SelfDrivenResult
}

export function createRunRecord(options: RunRecordOptions): RunRecord {
  const { learner, engine, gateway, runner, store, signal, config } = options
  const emit = (event: RunEvent) => options.onEvent?.(event)
  const warned = new Set<string>()
  const warn = (code: string, message: string) => {
    warned.add(code)
    emit({ type: 'warning-raised', at: Date.now(), code, message })
  }
  const warnOnce = (code: string, message: string) => {
    if (!warned.has(code)) warn(code, message)
  }
  const checkpoints = createCheckpoints({ learner, store, warn })
  const committed = store.steps().at(-1)?.step ?? 0
  const resumed = loadState(committed)
  const policy = options.policy ?? engine.name
  const state = createLoopState(resumed, options.policies ?? new Map([[policy, { engine }]]))
  /** One policy alone has the tokens of all. */
  const supersededTokens = () =>
    new Map(state.tokens.policies.map((name) => [name, runner.supersededTokens?.(options.policies && name) ?? 0]))
  let superseded: ReadonlyMap<string, number> = supersededTokens()
  /** Keys of rollouts that were started and are not counted. */
  const started = new Set<string>()
  /** Keys of started rollouts whose episodes an earlier process sampled. */
  const earlier = new Set<string>()
  let lastStep = committed
  let saved = resumed ?? state.toSaved(true)

  function loadState(step: number): SavedLoopState | null {
    const found = store.getState(stateKey(step)) as SavedLoopState | null | undefined
    if (found) return found
    if (step === 0) return null
    throw new TrainError('STORE_CORRUPT', `Run ${store.path} has step ${step} but not its accounts; start a new run.`)
  }

  /** While rollouts run, the sampler's count for them is in no account yet. */
  function accounts(): SavedLoopState {
    const total = supersededTokens()
    for (const [name, tokens] of total) state.tokens.addUntrained(name, tokens - superseded.get(name)!, 'superseded-attempt')
    superseded = total
    return state.toSaved(started.size === 0)
  }

  function countStopped(): void {
    for (const key of started) {
      const episode = store.episode(key)
      if (!episode) continue
      if (earlier.has(key)) state.tokens.addRecorded(episode)
      state.tokens.addEpisode(episode, 'in-flight')
    }
    started.clear()
    saved = accounts()
  }

  async function save(step: number): Promise<void> {
    const next = accounts()
    await state.timed('record', () => store.setState(stateKey(step), next))
    saved = next
  }

  function add(requests: readonly RolloutRequest[]): void {
    for (const { key } of requests) {
      const episode = store.episode(key)
      if (episode !== null && !isInfrastructureFailure(episode)) earlier.add(key)
      started.add(key)
    }
  }

  function count(episodes: readonly Episode[]): void {
    for (const episode of episodes) if (started.delete(episode.rollout) && earlier.has(episode.rollout)) state.tokens.addRecorded(episode)
    state.addEpisodes(episodes)
  }

  async function rollOut(requests: readonly RolloutRequest[]): Promise<Episode[]> {
    signal.throwIfAborted()
    add(requests)
    const episodes = await runner.runAll(requests, signal)
    signal.throwIfAborted()
    count(episodes)
    return episodes
  }

  function start(request: RolloutRequest, startSignal: AbortSignal): Promise<Episode> {
    add([request])
    return runner.run(request, startSignal)
  }

  function checkRollouts(step: number, episodes: readonly Episode[]): void {
    // A rollout that ended the workers it had for itself is no outage.
    const lost = episodes.filter((episode) => isInfrastructureFailure(episode) && episode.error?.code !== 'WORKER_LOST')
    if (2 * lost.length > episodes.length) {
      const { code, message } = lost[0]!.error!
      throw new TrainError(
        code as ErrorCode,
        `${lost.length} of ${episodes.length} rollouts of step ${step} have no outcome, so it was not trained; they run again when the run is resumed. The first: ${message}`,
        { details: { step, isOutage: true } },
      )
    }
    const ended = episodes.map(toEndedRollout)
    if (ended.length > 0 && ended.every(isFailed)) {
      const failures = countFailures(ended)
      throw new TrainError(
        episodes.every(hasNoRoom) ? 'POLICY_CONTEXT_OVERFLOW' : 'TRAINER_EMPTY_BATCH',
        `All ${ended.length} rollouts of step ${step} failed; nothing was trained:${failures.map((failure) => `\n  - ${describeFailure(failure)}`).join('')}`,
        { details: { step, failures, stopReasons: [...new Set(ended.map(({ stopReason }) => stopReason))] } },
      )
    }
    const message = overflows(step, episodes)
    if (message !== null) warnOnce('POLICY_CONTEXT_OVERFLOW', message)
  }

  async function publish(): Promise<number> {
    await gateway?.pause({ drain: true })
    try {
      const weightVersion = await learner.publish()
      // The difference between sampled and recomputed logprobs shows with the next tokens: in the metrics of the next step or evaluation.
      emit({ type: 'weights-updated', at: Date.now(), weightVersion })
      return weightVersion
    } finally {
      gateway?.resume()
    }
  }

  async function commit({ step, steps, weightVersion, rollouts, carriedGroups, startedAt, samples, ...rest }: StepCommit): Promise<void> {
    const { checkpointEvery } = config.training
    const due = step === steps || (checkpointEvery !== null && step % checkpointEvery === 0)
    const checkpoint = due ? await state.timed('checkpoint', () => checkpoints.save(step)) : null
    const metrics = { ...rest.metrics, stepMs: performance.now() - startedAt }
    await save(step)
    await state.timed('record', () => store.commitStep({ step, weightVersion, rollouts, carriedGroups, metrics, checkpoint }, samples))
    lastStep = step
    if (checkpoint) emit({ type: 'checkpoint-saved', at: Date.now(), step, path: checkpoint, best: false })
    emit({ type: 'step-end', at: Date.now(), step, steps, weightVersion, metrics })
  }

  function result(status: SelfDrivenResult['status']): SelfDrivenResult {
    const { evaluations, ledger, policies, rollouts, episodesByStopReason, best } = status === 'finished' ? accounts() : saved
    return {
      status,
      steps: lastStep,
      resumedFromStep: resumed ? committed : null,
      before: evaluations['before'] ?? null,
      after: evaluations['after'] ?? null,
      greedyBefore: evaluations['greedy-before'] ?? null,
      greedyAfter: evaluations['greedy-after'] ?? null,
      curve: store.steps().flatMap(({ step, metrics }) => {
        const reward = metrics['rewardMean']
        return reward === undefined ? [] : [{ step, reward, metrics: { ...metrics } }]
      }),
      ledger,
      policies,
      episodesByStopReason,
      rollouts,
      checkpoints: [...checkpoints.keptPaths(), ...(best ? [best.checkpoint] : [])],
      lastCheckpoint: checkpoints.keptPaths().at(-1) ?? null,
      bestCheckpoint: best?.checkpoint ?? null,
      phasesMs: { ...state.phasesMs },
    }
  }

  return {
    committed,
    policy,
    state,
    checkpoints,
    emit,
    warn,
    warnOnce,
    rollOut,
    start,
    count,
    isOfEarlierProcess: (key) => earlier.has(key),
    countStopped,
    checkRollouts,
    publish,
    save,
    commit,
    result,
  }
}

const stateKey = (step: number) => `loop-after-step-${step}`

/** Whether the prompt of the episode alone filled the context. */
const hasNoRoom = ({ error, reward }: Episode) => error?.code === 'POLICY_CONTEXT_OVERFLOW' && reward === null

function overflows(step: number, episodes: readonly Episode[]): string | null {
  const all = episodes.filter(hasNoRoom)
  const [first] = all
  if (!first) return null
  return `${all.length} of ${episodes.length} rollouts of step ${step} are not trained: the prompt left the model no room to answer. The first, of task "${first.taskId}": ${first.error?.message}`
}
