import { mkdir } from 'node:fs/promises'
import { dirname, relative } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import {
  type Episode,
  type EvaluationResult,
  type PolicyLearner,
  type PolicyLoss,
  type RunEvent,
  type RunReport,
  stableHash,
  type TokenEngine,
  TrainError,
  type TrainingTask,
} from '@aworld-train/core'
import { createWork, type LocalConfig, OpenLoop, type RolloutOptions, type RunRequest } from '@aworld-train/training'
import { checkpointPath } from './checkpoint-path.ts'
import { configurationHash } from './configuration-hash.ts'
import { inLocalRun, type LocalRun } from './local-run.ts'
import type { LocalPlan } from './plan.ts'

/** Values of the report that a trainer of your own sets in place of the run's. */
export interface PolicyResult {
  /** The evaluations before and after training. Default: those with these names. */
  readonly before?: EvaluationResult | undefined
  readonly after?: EvaluationResult | undefined
  /** Default: the mean reward of the rollouts of each step. */
  readonly curve?: readonly number[] | undefined
}

/**
 * A run with a policy that an agent can be run against and that can be trained, for a trainer of your own. Everything up to a `publish` of
 * the learner is a step, which is then kept. A resumed trainer repeats the same calls in the same order: kept rollouts are not sampled
 * again, and updates are repeated.
 */
export interface OpenPolicy extends AsyncDisposable {
  /** Folder of the run. */
  readonly path: string
  readonly config: LocalConfig
  readonly trainTasks: readonly TrainingTask[]
  /** Empty without a test set. */
  readonly testTasks: readonly TrainingTask[]
  /** The policies by their names, which samples have in `policy`. */
  readonly policies: Readonly<Record<string, { readonly trainable: boolean }>>
  /** Of several policies, that of the first. All have one weight version. */
  readonly engine: Pick<TokenEngine, 'name' | 'model' | 'weightVersion'>
  /** The loss that `training.loss` is or names; `null` if there is none. */
  readonly loss: PolicyLoss | null
  /** Updates the weights, by a loss of your own or by one of its kinds. `trainSft` and `publish()` make them sample, and end a step. */
  readonly learner: PolicyLearner
  readonly signal: AbortSignal
  /**
   * Runs the agent on each task with the published weights and scores it. Samples of one task are adjacent. Every call has new random
   * numbers. Rejects with TRAINER_EMPTY_BATCH if all failed.
   */
  rollout(tasks: readonly TrainingTask[], options?: RolloutOptions): Promise<Episode[]>
  /**
   * Mean reward under the sampling of `evaluation` in the configuration, with the same random numbers on every call. Rejects with
   * ROLLOUT_CONFLICT if `name` is used twice. A resumed run returns the recorded result.
   */
  evaluate(tasks: readonly TrainingTask[], name: string): Promise<EvaluationResult>
  /**
   * Loads the newest checkpoint of a resumed run and resolves to its step, or to 0 if there is none. A loop that starts there repeats no
   * update before it.
   */
  restore(): Promise<number>
  /**
   * Writes the weights as a Hugging Face folder `checkpoints/<name>` and resolves to its path. Rejects with CONFIG_INVALID for a name that
   * leads out of the run.
   */
  saveModel(name: string): Promise<string>
  /** Writes `report.json` and closes the run as finished. */
  finish(result?: PolicyResult): Promise<RunReport>
  /** Waits for work under way, then closes the run. A run that was not finished can be resumed. */
  [Symbol.asyncDispose](): Promise<void>
}

export interface OpenPolicyRequest extends RunRequest {
  /** Name of the trainer. A run is resumed only by the trainer that started it. */
  readonly trainer: string
}

const savedModelsKey = 'saved-models'

/** Starts or resumes a run, makes the starting model if a warm-up is named, and opens all parts between the agent and the policy. */
export async function openPolicy(plan: LocalPlan, { trainer, ...request }: OpenPolicyRequest): Promise<OpenPolicy> {
  const opened = Promise.withResolvers<OpenPolicy>()
  const disposed = Promise.withResolvers<void>()
  const hash = stableHash([trainer, configurationHash(plan)])
  const closed = inLocalRun(plan, { ...request, configurationHash: hash }, async (run) => {
    let closing: Promise<void> | null = null
    const { policy, close } = createPolicy(plan, run, { signal: request.signal, closing: () => closing })
    const dispose = () => {
      closing = closed
      disposed.resolve()
      return closed
    }
    opened.resolve({ ...policy, [Symbol.asyncDispose]: dispose })
    await disposed.promise
    await close()
  })
  closed.catch(opened.reject)
  return await opened.promise
}

interface PolicyParts {
  readonly policy: Omit<OpenPolicy, typeof Symbol.asyncDispose>
  close(): Promise<void>
}

interface PolicyLife {
  readonly signal: AbortSignal
  /** Resolves when the run is closed; `null` until closing has begun. */
  closing(): Promise<void> | null
}

function createPolicy(plan: LocalPlan, run: LocalRun, { signal, closing }: PolicyLife): PolicyParts {
  const { path, store, stage, onEvent } = run
  const { engine } = stage.policy
  const progress = createRolloutProgress(onEvent)
  run.listen(progress.read)
  const loop = new OpenLoop({
    learner: stage.policy.learner,
    engine,
    policies: stage.policy.members,
    gateway: stage.gateway,
    runner: stage.runner,
    store,
    config: plan.config,
    seed: plan.seed,
    signal,
    onEvent,
    onRollouts: progress.start,
  })
  const { learner } = loop
  const saved = new Set((store.getState(savedModelsKey) as string[] | null | undefined) ?? [])
  const work = createWork()
  let finishing: Promise<RunReport> | undefined
  let isEnded = false

  /** Allows `method` only while the run is open; closing waits for its end. An error that nobody awaits does not end the process. */
  const whileOpen =
    <Arguments extends unknown[], Result>(method: (...input: Arguments) => Promise<Result>) =>
    (...input: Arguments): Promise<Result> => {
      const result = work.run(() => (isEnded ? Promise.reject(endedError()) : method(...input))).catch(afterClosing)
      result.catch(() => {})
      return result
    }

  /** A caller that returns a promise without `await` handles it only after the policy is closed, so it must not be rejected before. */
  async function afterClosing(error: unknown): Promise<never> {
    await closing()?.then(
      () => setImmediate(),
      () => {},
    )
    throw error
  }

  async function saveModel(name: string): Promise<string> {
    const directory = await checkpointPath(path, name)
    await mkdir(dirname(directory), { recursive: true })
    await stage.policy.saveModel(directory)
    saved.add(relative(path, directory))
    await store.setState(savedModelsKey, [...saved])
    return directory
  }

  async function finish({ before, after, curve }: PolicyResult): Promise<RunReport> {
    await work.settled()
    isEnded = true
    const result = loop.result('finished')
    const metricsOf = (step: number) => result.curve.find((each) => each.step === step)?.metrics ?? {}
    return await run.end({
      ...result,
      before: before ?? result.before,
      after: after ?? result.after,
      curve: curve?.map((reward, index) => ({ step: index + 1, reward, metrics: metricsOf(index + 1) })) ?? result.curve,
      checkpoints: [...result.checkpoints, ...saved],
      lastCheckpoint: [...saved].at(-1) ?? result.lastCheckpoint,
    })
  }

  return {
    policy: {
      path,
      config: plan.config,
      loss: plan.loss,
      trainTasks: plan.train.tasks,
      testTasks: plan.test?.tasks ?? [],
      policies: Object.fromEntries(plan.policies.map(({ name, trainable }) => [name ?? engine.model.name, { trainable }])),
      engine,
      signal,
      learner: {
        update: whileOpen(learner.update),
        publish: whileOpen(learner.publish),
        logprobs: whileOpen(learner.logprobs),
        save: whileOpen(learner.save),
        load: whileOpen(learner.load),
        resetOptimizer: whileOpen(learner.resetOptimizer),
      },
      rollout: whileOpen(loop.rollout.bind(loop)),
      evaluate: whileOpen(loop.evaluate.bind(loop)),
      restore: whileOpen(loop.restore.bind(loop)),
      saveModel: whileOpen(saveModel),
      finish(result = {}) {
        finishing ??= finish(result)
        finishing.catch(() => {})
        return finishing
      },
    },
    async close() {
      await work.settled()
      isEnded = true
      const report = await finishing?.catch(() => null)
      if (report) return
      const result = loop.result(signal.aborted ? 'stopped' : 'failed')
      await run.end({
        ...result,
        checkpoints: [...result.checkpoints, ...saved],
        lastCheckpoint: [...saved].at(-1) ?? result.lastCheckpoint,
      })
    },
  }
}

const endedError = () =>
  new TrainError(
    'POLICY_UNAVAILABLE',
    'The training of this policy has ended, and its run is closed; open a policy in train(), and await what it is asked for.',
  )

/** Shows the progress of a phase's rollouts and their mean reward so far. Keys of rollouts begin with their phase. */
function createRolloutProgress(emit: (event: RunEvent) => void) {
  const phases = new Map<string, { readonly total: number; done: number; reward: number }>()
  return {
    start(phase: string, total: number) {
      phases.set(phase, { total, done: 0, reward: 0 })
    },
    read(event: RunEvent) {
      if (event.type !== 'rollout-end') return
      const phase = event.rollout.slice(0, event.rollout.indexOf('/'))
      const state = phases.get(phase)
      if (!state) return
      state.done += 1
      state.reward += event.reward ?? 0
      const { total, done, reward } = state
      if (done % Math.ceil(total / 20) === 0 || done === total)
        emit({ type: 'phase-progress', at: Date.now(), phase, done, total, metrics: { reward: reward / done } })
    },
  }
}
