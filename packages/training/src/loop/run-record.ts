import { type Episode, type RolloutRequest, type RunEvent, type StepRecord, type StepSample, TrainError } from '@aworld-train/core'
import { checkRollouts } from './check-rollouts.ts'
import { type Checkpoints, createCheckpoints } from './checkpoints.ts'
import { createLoopState, type LoopState, type SavedLoopState } from './loop-state.ts'
import type { SelfDrivenOptions, SelfDrivenResult } from './self-driven-options.ts'
import { StartedRollouts } from './started-rollouts.ts'

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
export class RunRecord {
  /** Last step that earlier processes committed. */
  readonly committed: number
  /** Name of the policy in requests. */
  readonly policy: string
  readonly state: LoopState
  readonly checkpoints: Checkpoints
  readonly emit: (event: RunEvent) => void
  readonly #options: RunRecordOptions
  /** The accounts of earlier processes; `null` in the first. */
  readonly #resumed: SavedLoopState | null
  readonly #started: StartedRollouts
  /** Codes of the warnings that this process has given. */
  readonly #warned = new Set<string>()
  /** Tokens of superseded attempts that are in the accounts, by policy. */
  #superseded: ReadonlyMap<string, number>
  #lastStep: number
  #saved: SavedLoopState

  constructor(options: RunRecordOptions) {
    const { learner, engine, store } = options
    this.#options = options
    this.emit = (event) => options.onEvent?.(event)
    this.checkpoints = createCheckpoints({ learner, store, warn: (code, message) => this.warn(code, message) })
    this.committed = store.steps().at(-1)?.step ?? 0
    this.#lastStep = this.committed
    this.#resumed = loadState(store, this.committed)
    this.policy = options.policy ?? engine.name
    this.state = createLoopState(this.#resumed, options.policies ?? new Map([[this.policy, { engine }]]))
    this.#started = new StartedRollouts(store, this.state.tokens)
    this.#superseded = this.#supersededTokens()
    this.#saved = this.#resumed ?? this.state.toSaved(true)
  }

  warn(code: string, message: string): void {
    this.#warned.add(code)
    this.emit({ type: 'warning-raised', at: Date.now(), code, message })
  }

  /** Warns unless this process has given the same warning. */
  warnOnce(code: string, message: string): void {
    if (!this.#warned.has(code)) this.warn(code, message)
  }

  /** Runs requests and counts their episodes. Results of an earlier process come from the record. */
  async rollOut(requests: readonly RolloutRequest[]): Promise<Episode[]> {
    const { runner, signal } = this.#options
    signal.throwIfAborted()
    this.#started.add(requests)
    const episodes = await runner.runAll(requests, signal)
    signal.throwIfAborted()
    this.count(episodes)
    return episodes
  }

  /** Runs a request without counting its episode. */
  start(request: RolloutRequest, signal: AbortSignal): Promise<Episode> {
    this.#started.add([request])
    return this.#options.runner.run(request, signal)
  }

  /** The episodes of a whole group with their values, if the reward sees groups. */
  async scoreGroup(requests: readonly RolloutRequest[], episodes: readonly Episode[], signal: AbortSignal): Promise<readonly Episode[]> {
    return (await this.#options.runner.scoreGroup?.(requests, episodes, signal)) ?? episodes
  }

  /** Counts episodes of requests that were started. */
  count(episodes: readonly Episode[]): void {
    this.#started.count(episodes)
    this.state.addEpisodes(episodes)
  }

  /** Whether an earlier process of the run sampled the episode of a started rollout. */
  isOfEarlierProcess(key: string): boolean {
    return this.#started.isOfEarlierProcess(key)
  }

  /** Counts the rollouts that a stop found in flight; they must all have ended. */
  countStopped(): void {
    this.#started.countInFlight()
    this.#saved = this.#accounts()
  }

  /** Throws if the infrastructure failed most rollouts, or if every rollout failed. Warns once if some prompts alone filled the context. */
  checkRollouts(step: number, episodes: readonly Episode[]): void {
    const overflows = checkRollouts(step, episodes)
    if (overflows !== null) this.warnOnce('POLICY_CONTEXT_OVERFLOW', overflows)
  }

  /** Switches sampling to the weights of the learner, between two model calls. */
  async publish(): Promise<number> {
    const { gateway, learner } = this.#options
    await gateway?.pause({ drain: true })
    try {
      const weightVersion = await learner.publish()
      // The difference between sampled and recomputed logprobs shows with the next tokens: in the metrics of the next step or evaluation.
      this.emit({ type: 'weights-updated', at: Date.now(), weightVersion })
      return weightVersion
    } finally {
      gateway?.resume()
    }
  }

  /** Keeps the accounts under a step. */
  async save(step: number): Promise<void> {
    const next = this.#accounts()
    await this.state.timed('record', () => this.#options.store.setState(stateKey(step), next))
    this.#saved = next
  }

  /** Keeps the accounts and marks a step as trained, with a checkpoint if one is due. */
  async commit({ step, steps, weightVersion, rollouts, carriedGroups, startedAt, samples, ...rest }: StepCommit): Promise<void> {
    const { config, store } = this.#options
    const { checkpointEvery } = config.training
    const due = step === steps || (checkpointEvery !== null && step % checkpointEvery === 0)
    const checkpoint = due ? await this.state.timed('checkpoint', () => this.checkpoints.save(step)) : null
    const metrics = { ...rest.metrics, stepMs: performance.now() - startedAt }
    await this.save(step)
    await this.state.timed('record', () => store.commitStep({ step, weightVersion, rollouts, carriedGroups, metrics, checkpoint }, samples))
    this.#lastStep = step
    if (checkpoint) this.emit({ type: 'checkpoint-saved', at: Date.now(), step, path: checkpoint, best: false })
    this.emit({ type: 'step-end', at: Date.now(), step, steps, weightVersion, metrics })
  }

  /** The saved result, also of a run that has not finished. */
  result(status: SelfDrivenResult['status']): SelfDrivenResult {
    const saved = status === 'finished' ? this.#accounts() : this.#saved
    const { evaluations, ledger, policies, rollouts, episodesByStopReason, best } = saved
    const kept = this.checkpoints.keptPaths()
    return {
      status,
      steps: this.#lastStep,
      resumedFromStep: this.#resumed ? this.committed : null,
      before: evaluations['before'] ?? null,
      after: evaluations['after'] ?? null,
      greedyBefore: evaluations['greedy-before'] ?? null,
      greedyAfter: evaluations['greedy-after'] ?? null,
      curve: this.#options.store.steps().flatMap(({ step, metrics }) => {
        const reward = metrics['rewardMean']
        return reward === undefined ? [] : [{ step, reward, metrics: { ...metrics } }]
      }),
      ledger,
      policies,
      episodesByStopReason,
      rollouts,
      checkpoints: [...kept, ...(best ? [best.checkpoint] : [])],
      lastCheckpoint: kept.at(-1) ?? null,
      bestCheckpoint: best?.checkpoint ?? null,
      phasesMs: { ...this.state.phasesMs },
    }
  }

  /** The accounts at hand. While rollouts run, the sampler's count for them is in no account yet. */
  #accounts(): SavedLoopState {
    const { tokens } = this.state
    const total = this.#supersededTokens()
    for (const [name, count] of total) tokens.addUntrained(name, count - this.#superseded.get(name)!, 'superseded-attempt')
    this.#superseded = total
    return this.state.toSaved(this.#started.allCounted)
  }

  /** One policy alone has the tokens of all. */
  #supersededTokens(): ReadonlyMap<string, number> {
    const { runner, policies } = this.#options
    return new Map(this.state.tokens.policies.map((name) => [name, runner.supersededTokens?.(policies && name) ?? 0]))
  }
}

const stateKey = (step: number) => `loop-after-step-${step}`

/** The accounts that were kept under a step; `null` for a run that begins. */
function loadState(store: RunRecordOptions['store'], step: number): SavedLoopState | null {
  const found = store.getState(stateKey(step)) as SavedLoopState | null | undefined
  if (found) return found
  if (step === 0) return null
  throw new TrainError('STORE_CORRUPT', `Run ${store.path} has step ${step} but not its accounts; start a new run.`)
}
