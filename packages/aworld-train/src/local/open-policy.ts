import { join } from 'node:path'
import type { Learner, TokenEngine } from '@aworld-train/core'
import { type Episode, type EvaluationResult, type RunEvent, type RunReport, type Task, TrainError } from '@aworld-train/protocol'
import { openRunStore, resolveRun, writeJsonAtomically } from '@aworld-train/store'
import { evaluationMetrics, evaluationRequests, type LocalConfig, summarizeEvaluation } from '@aworld-train/training'
import { longPromptNotes } from '../checks/long-prompts.ts'
import type { RunOptions } from '../run-options.ts'
import { openTriedParts } from '../stage/rollout-parts.ts'
import { countCallsOf, summarizeCalls } from '../stage/run-accounts.ts'
import { createWarningTally } from '../stage/warning-tally.ts'
import type { LocalPlan } from './plan.ts'
import { displayPath, runVersions, writeRunFiles } from './run-files.ts'
import { describeRun } from './run-report.ts'
import { openStage } from './stage.ts'
import { makeModel } from './starting-model.ts'

export interface RolloutOptions {
  /** Rollouts of each task; `training.samplesPerPrompt` by default. */
  readonly samples?: number | undefined
  /** Shown, and kept with each episode; `train` by default. */
  readonly split?: string | undefined
}

/** What a trainer of your own says at its end; the rest of the report is filled in. */
export interface PolicyResult {
  readonly before?: EvaluationResult | undefined
  readonly after?: EvaluationResult | undefined
  /** Mean reward of each step. */
  readonly curve?: readonly number[] | undefined
}

/** A run with a policy in it that an agent can be run against and that can be trained: what a trainer of your own works with. */
export interface OpenPolicy extends AsyncDisposable {
  /** Folder of the run. */
  readonly path: string
  readonly config: LocalConfig
  readonly trainTasks: readonly Task[]
  /** Empty where there is no test set. */
  readonly testTasks: readonly Task[]
  readonly engine: Pick<TokenEngine, 'name' | 'model' | 'weightVersion'>
  /** Updates the weights; `trainSft` and `publish()` make them the ones that sample. */
  readonly learner: Learner
  readonly signal: AbortSignal
  /** Runs the agent on each task with the published weights and scores it; the samples of a task stand together. New random numbers on every call. */
  rollout(tasks: readonly Task[], options?: RolloutOptions): Promise<Episode[]>
  /** Mean reward under the sampling of `evaluation` in the configuration, with the same random numbers on every call. `name` is unique in the run. */
  evaluate(tasks: readonly Task[], name: string): Promise<EvaluationResult>
  /** Writes the published weights as a Hugging Face folder `checkpoints/<name>` and resolves to its path. */
  saveModel(name: string): Promise<string>
  /** Writes `report.json` and closes the run as finished. */
  finish(result: PolicyResult): Promise<RunReport>
}

export interface OpenPolicyRequest {
  readonly runPath: string
  readonly options: RunOptions
  readonly signal: AbortSignal
}

/** Starts a run directory, makes the starting model where a warm-up is named, and opens everything between the agent and the policy. CONFIG_INVALID where a run is to be resumed. */
export async function openPolicy(plan: LocalPlan, { runPath, options, signal }: OpenPolicyRequest): Promise<OpenPolicy> {
  if (options.resume !== undefined) {
    throw new TrainError(
      'CONFIG_INVALID',
      `A trainer of your own does not resume "${options.resume}"; leave resume out to start a new run.`,
    )
  }
  const startedAt = Date.now()
  const cpuAtStart = process.cpuUsage()
  await using stack = new AsyncDisposableStack()
  const parts = await openTriedParts(stack, plan, { signal, onEvent: options.onEvent })
  const { path } = await resolveRun({ runPath, name: options.name ?? plan.name, configurationHash: 'custom', fresh: true })
  const store = stack.adopt(
    await openRunStore({ path, manifest: { name: plan.name, configurationHash: 'custom', versions: runVersions() } }),
    (each) => each.close(),
  )
  const tally = createWarningTally()
  const emit = (event: RunEvent) => {
    store.appendEvent(event)
    tally.read(event)
    options.onEvent?.(event)
  }
  let finished = false
  stack.defer(() => {
    if (!finished) emit({ type: 'run-end', at: Date.now(), status: signal.aborted ? 'stopped' : 'failed' })
  })
  await writeRunFiles(path, plan)
  const warmUpMs = { value: 0 }
  const model = plan.model ?? (await makeModel({ ...plan, engine: plan.config.engine }, path, store, { emit, signal, warmUpMs }))
  const progress = createRolloutProgress(emit)
  const stage = stack.adopt(
    await openStage({
      model,
      plan,
      parts,
      store,
      answers: new Map([...plan.train.answers, ...(plan.validation?.answers ?? []), ...(plan.test?.answers ?? [])]),
      onEvent: progress.onEvent,
    }),
    (each) => each.close(),
  )
  const notes = [...plan.notes, ...longPromptNotes([plan.train, plan.test], stage)]
  const { engine, learner } = stage.local
  emit({
    type: 'run-start',
    version: 1,
    at: Date.now(),
    run: plan.name,
    path: displayPath(path),
    seed: plan.seed,
    resumedFromStep: null,
    details: describeRun(plan, stage, model),
  })
  for (const message of notes) emit({ type: 'warning-raised', at: Date.now(), code: 'CONFIG_NOTE', message })

  const { sampling, evaluation, training } = plan.config
  const checkpoints: string[] = []
  const stopReasons: Record<string, number> = {}
  let rollouts = 0
  let calls = 0
  const count = (episodes: readonly Episode[]) => {
    rollouts += episodes.length
    for (const { stopReason } of episodes) stopReasons[stopReason] = (stopReasons[stopReason] ?? 0) + 1
    return episodes
  }
  const owned = stack.move()
  return {
    path,
    config: plan.config,
    trainTasks: plan.train.tasks,
    testTasks: plan.test?.tasks ?? [],
    engine,
    learner,
    signal,
    async rollout(tasks, { samples = training.samplesPerPrompt, split = 'train' } = {}) {
      calls += 1
      const call = calls
      const phase = `rollout ${call}`
      const requests = tasks.flatMap((task, position) =>
        Array.from({ length: samples }, (_, sample) => ({
          version: 1 as const,
          key: `${phase}/${position}/${sample}`,
          task,
          group: `${phase}/${position}`,
          sample,
          split,
          policy: engine.name,
          sampling: { ...sampling, stop: [], seed: plan.seed + call },
          limits: {},
        })),
      )
      progress.start(phase, requests.length)
      const episodes = await stage.runner.runAll(requests, signal)
      count(episodes)
      return episodes
    },
    async evaluate(tasks, name) {
      const { temperature, topP, topK, samplesPerPrompt, kindKey } = evaluation
      const request = {
        name,
        split: 'test',
        step: engine.weightVersion(),
        tasks,
        sampling: { temperature, topP, topK, maxTokens: sampling.maxTokens, stop: [], seed: plan.seed },
        samplesPerPrompt,
        policy: engine.name,
        limits: {},
        kindKey,
      }
      const requests = evaluationRequests(request)
      emit({ type: 'evaluation-start', at: Date.now(), name, rollouts: requests.length })
      const result = summarizeEvaluation(request, count(await stage.runner.runAll(requests, signal)))
      emit({ type: 'evaluation-end', at: Date.now(), name, step: result.step, metrics: evaluationMetrics(result) })
      return result
    },
    async saveModel(name) {
      const directory = join(path, 'checkpoints', name)
      await stage.local.saveModel(directory)
      checkpoints.push(join('checkpoints', name))
      return directory
    },
    async finish({ before, after, curve = [] }) {
      const cpu = process.cpuUsage(cpuAtStart)
      const { calls, tokenReport } = summarizeCalls(await countCallsOf(stage), store.episodes())
      const report: RunReport = {
        version: 1,
        run: plan.name,
        path,
        status: 'finished',
        seed: plan.seed,
        engine: engine.name,
        tier: { ...stage.local.tier },
        before: before ?? null,
        after: after ?? null,
        greedyBefore: null,
        greedyAfter: null,
        curve: curve.map((value, index) => ({ step: index + 1, reward: value, metrics: {} })),
        ledger: null,
        tokenReport,
        counts: { rollouts, episodesByStopReason: stopReasons, ...calls },
        times: {
          wallMs: Date.now() - startedAt,
          cpuMs: (cpu.user + cpu.system) / 1000,
          phasesMs: warmUpMs.value > 0 ? { 'warm-up': warmUpMs.value } : {},
        },
        checkpoints,
        warnings: tally.warnings(),
        versions: runVersions(),
      }
      await writeJsonAtomically(join(path, 'report.json'), report)
      await store.complete()
      finished = true
      emit({ type: 'run-end', at: Date.now(), status: 'finished' })
      return report
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

/** Shows how far the rollouts of a phase are, and their mean reward so far; keys of rollouts begin with their phase. */
function createRolloutProgress(emit: (event: RunEvent) => void) {
  const phases = new Map<string, { readonly total: number; done: number; reward: number }>()
  return {
    start(phase: string, total: number) {
      phases.set(phase, { total, done: 0, reward: 0 })
    },
    onEvent(event: RunEvent) {
      emit(event)
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
