import {
  type Episode,
  type EvaluationResult,
  hasOwnLoss,
  type PolicyLearner,
  type PolicyLossRequest,
  type RolloutRequest,
  TrainError,
  type TrainingTask,
  toTrainingSamples,
  type UpdateMetrics,
  type UpdateRequest,
  updateWithLoss,
} from '@aworld-train/core'
import { groupProblems } from '../config/own-config.ts'
import { kindOf } from '../dataset/task-column.ts'
import { checkLogprobs } from './check-logprobs.ts'
import { toLimits } from './group-requests.ts'
import { OpenStep } from './open-step.ts'
import { runEvaluation } from './run-evaluation.ts'
import { RunRecord, type RunRecordOptions } from './run-record.ts'
import { SelectedSamples } from './selected-samples.ts'
import type { SelfDrivenResult } from './self-driven-options.ts'
import { rowsOfUntrained } from './step-samples.ts'
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

/** Distance between the seeds of two calls of one step. No run has as many steps. */
const seedsOfCall = 2 ** 20
/** The key of the state that counts, by phase, how often all rollouts of a call failed. */
const givenUpKey = 'rollouts-given-up'

/**
 * A run whose steps its caller makes. A step lasts until a `publish` of its learner, which commits it. When a later process of the run
 * reaches a committed step, it uses the recorded episodes and repeats the updates.
 */
export class OpenLoop {
  readonly learner: PolicyLearner
  readonly #options: OpenLoopOptions
  readonly #record: RunRecord
  readonly #selected: SelectedSamples
  /** Keys of the rollouts that committed steps trained. */
  readonly #trained: Set<string>
  readonly #givenUp: Record<string, number>
  /** Names of the evaluations that this process made. */
  readonly #evaluated = new Set<string>()
  readonly #sampled = createWork()
  #done = 0
  #current: OpenStep | null = null
  /** Whether the learner has weights that do not sample yet. */
  #isAhead = false

  constructor(options: OpenLoopOptions) {
    const { learner, store, config } = options
    const [problem] = groupProblems(config.training, 'the trainer asks for its groups itself')
    if (problem !== undefined) throw new TrainError('CONFIG_INVALID', problem)
    this.#options = options
    this.#record = new RunRecord(options)
    this.#selected = new SelectedSamples(this.#record.state.tokens)
    this.#trained = new Set(store.steps().flatMap((step) => step.rollouts))
    this.#givenUp = { ...(store.getState(givenUpKey) as Record<string, number> | null | undefined) }
    this.learner = {
      update: (request) => this.#update(request),
      publish: () => this.#publish(),
      logprobs: (sequences, temperature, policies) => learner.logprobs(sequences, temperature, policies),
      save: (directory) => learner.save(directory),
      load: (directory, agreed) => {
        this.#isAhead = true
        return learner.load(directory, agreed)
      },
      resetOptimizer: () => learner.resetOptimizer(),
    }
  }

  /** Rejects with TRAINER_EMPTY_BATCH if all failed. The next process of the run tries them anew. */
  rollout(tasks: readonly TrainingTask[], options: RolloutOptions = {}): Promise<Episode[]> {
    return this.#sampled.run(() => this.#rollout(tasks, options))
  }

  /** Rejects with ROLLOUT_CONFLICT for a name that this process has used. */
  evaluate(tasks: readonly TrainingTask[], name: string): Promise<EvaluationResult> {
    if (this.#evaluated.has(name)) {
      const message = `The evaluation "${name}" was made already, and its result is kept under that name; give each evaluation of a run a name of its own, such as "${name}-2".`
      return Promise.reject(new TrainError('ROLLOUT_CONFLICT', message, { details: { name } }))
    }
    this.#evaluated.add(name)
    return this.#sampled.run(async () => {
      try {
        return await this.#evaluate(tasks, name)
      } catch (error) {
        this.#evaluated.delete(name)
        throw error
      }
    })
  }

  /** Loads the newest checkpoint and resolves to its step, or to 0 if there is none. */
  async restore(): Promise<number> {
    if (this.#current !== null || this.#done > 0)
      throw new TrainError('CONFIG_INVALID', 'restore() comes before the first rollout and the first update; call it there.')
    const { committed, checkpoints, state } = this.#record
    const from = (await state.timed('resume', () => checkpoints.restore(committed))) ?? 0
    if (from > 0) await this.#record.publish()
    this.#done = from
    return from
  }

  result(status: SelfDrivenResult['status']): SelfDrivenResult {
    return this.#record.result(status)
  }

  #step(): OpenStep {
    const next = this.#done + 1
    this.#current ??= new OpenStep(next, next <= this.#record.committed)
    return this.#current
  }

  async #rollout(tasks: readonly TrainingTask[], options: RolloutOptions): Promise<Episode[]> {
    const { store, config, onRollouts } = this.#options
    const { samples = config.training.samplesPerPrompt, split = 'train' } = options
    const openStep = this.#step()
    const { step, isRepeated } = openStep
    const call = openStep.beginCall()
    const place = call === 0 ? `rollout ${step}` : `rollout ${step}-${call + 1}`
    const phaseOf = (attempts: number) => (attempts === 0 ? place : `${place}.${attempts}`)
    const sampling = { ...config.sampling, stop: [], seed: this.#options.seed + step + call * seedsOfCall }
    const shared = { version: 1 as const, split, step, policy: this.#record.policy, sampling, limits: toLimits(config.limits) }
    const requestsOf = (phase: string): RolloutRequest[] =>
      tasks.flatMap((task, position) => {
        const ofTask = { task, group: `${phase}/${position}`, kind: kindOf(task, config.evaluation.kindKey) }
        return Array.from({ length: samples }, (_, sample) => ({ key: `${ofTask.group}/${sample}`, sample, ...ofTask, ...shared }))
      })
    const attempts = this.#givenUp[place] ?? 0
    if (!isRepeated) for (let attempt = 0; attempt < attempts; attempt++) this.#countGivenUp(requestsOf(phaseOf(attempt)))
    const requests = requestsOf(phaseOf(attempts))
    const startedAt = performance.now()
    if (!isRepeated) onRollouts?.(phaseOf(attempts), requests.length)
    const episodes = isRepeated
      ? this.#recorded(step, requests)
      : await this.#record.state.timed('rollout', () => this.#record.rollOut(requests))
    openStep.addTime('rollout', startedAt)
    const groups = Map.groupBy(episodes, (_, index) => requests[index]!.group)
    for (const group of groups.values()) openStep.addRows(this.#selected.hand(group, isRepeated))
    if (!isRepeated) {
      try {
        this.#record.checkRollouts(step, episodes)
      } catch (error) {
        this.#givenUp[place] = attempts + 1
        await store.setState(givenUpKey, this.#givenUp)
        throw error
      }
    }
    if (split === 'train') openStep.addEpisodes(episodes)
    await this.#check(openStep, episodes)
    return episodes
  }

  /** The episodes of a committed step. */
  #recorded(step: number, requests: readonly RolloutRequest[]): Episode[] {
    const { store } = this.#options
    return requests.map(({ key, task }) => {
      const episode = store.episode(key)
      if (episode?.taskId === task.id) return episode
      throw new TrainError(
        'STORE_CONFLICT',
        `Step ${step} of run ${store.path} was made with other rollouts than the trainer asks for now ("${key}" of task "${task.id}"). A trainer that is resumed does the same things in the same order; start a new run with --new.`,
      )
    })
  }

  /** Counts the tokens of rollouts that an earlier process of the run gave up. */
  #countGivenUp(requests: readonly RolloutRequest[]): void {
    const { state } = this.#record
    const episodes = requests.flatMap(({ key }) => this.#options.store.episode(key) ?? [])
    for (const episode of episodes) {
      state.tokens.addRecorded(episode)
      const { untrainedTurns } = toTrainingSamples(episode, { truncatedSampling: 'accept' })
      state.tokens.addRows(rowsOfUntrained(episode.rollout, untrainedTurns))
    }
    state.addEpisodes(episodes)
  }

  /** Recomputes some logprobs if the learner still has the weights that sampled. */
  async #check(openStep: OpenStep, episodes: readonly Episode[]): Promise<void> {
    if (this.#isAhead) return
    const { learner, store, config } = this.#options
    const samples = episodes.flatMap((episode) => toTrainingSamples(episode, { truncatedSampling: 'accept' }).samples)
    const settings = { ...config.training.logprobCheck, temperature: config.sampling.temperature }
    try {
      openStep.difference = await this.#record.state.timed('check', () => checkLogprobs(learner, samples, settings))
    } catch (error) {
      if (!openStep.isRepeated) throw error
      throw new TrainError(
        'POLICY_LOGPROB_MISMATCH',
        `The updates before step ${openStep.step} of run ${store.path} come out otherwise than when they were first made. A trainer that is resumed does the same things in the same order; start a new run with --new.`,
        { cause: error },
      )
    }
  }

  async #update(request: UpdateRequest | PolicyLossRequest): Promise<UpdateMetrics> {
    const { learner } = this.#options
    const openStep = this.#step()
    this.#isAhead = true
    const startedAt = performance.now()
    const metrics = await this.#record.state.timed('update', () =>
      hasOwnLoss(request) ? updateWithLoss(learner, request) : learner.update(request),
    )
    const trained = this.#selected.train(request.samples, metrics.trainedTokens, openStep.isRepeated)
    openStep.addUpdate(request.samples, metrics, trained)
    openStep.addTime('update', startedAt)
    return metrics
  }

  /** Ends the step, with all its rollouts. */
  async #publish(): Promise<number> {
    const { state, committed, emit } = this.#record
    await this.#sampled.settled()
    const weightVersion = await state.timed('publish', () => this.#record.publish())
    this.#isAhead = false
    const ended = this.#current
    if (ended === null) return weightVersion
    this.#current = null
    this.#done = ended.step
    const { step, startedAt } = ended
    if (ended.isRepeated) {
      emit({ type: 'phase-progress', at: Date.now(), phase: 'resume', done: step, total: committed, metrics: {} })
      return weightVersion
    }
    const rollouts = ended.trainedRollouts().filter((rollout) => !this.#trained.has(rollout))
    for (const rollout of rollouts) this.#trained.add(rollout)
    const metrics = ended.metrics(this.#options.config.training)
    await this.#record.commit({ step, steps: 0, startedAt, weightVersion, rollouts, metrics, samples: ended.samples() })
    return weightVersion
  }

  async #evaluate(tasks: readonly TrainingTask[], name: string): Promise<EvaluationResult> {
    const { learner, config, seed } = this.#options
    const earlier = this.#record.state.evaluations[name]
    if (earlier) return earlier
    if (tasks.length === 0)
      throw new TrainError('DATASET_INVALID', `The evaluation "${name}" has no tasks; name a test set, or leave the evaluation out.`)
    const { temperature, topP, topK, samplesPerPrompt, kindKey } = config.evaluation
    const plan = {
      name,
      split: 'test',
      step: this.#done,
      tasks,
      sampling: { temperature, topP, topK, maxTokens: config.sampling.maxTokens, stop: [], seed },
      samplesPerPrompt,
      policy: this.#record.policy,
      limits: toLimits(config.limits),
      kindKey,
    }
    const { logprobCheck } = config.training
    const check = this.#isAhead ? { ...logprobCheck, tokens: 0 } : logprobCheck
    return await runEvaluation({ record: this.#record, learner, logprobCheck: check }, plan)
  }
}
