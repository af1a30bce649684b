import { join, resolve } from 'node:path'
import { passAtK } from '@aworld-train/core'
import { type Episode, type RunReport, type Sampling, type TokenReport, TrainError } from '@aworld-train/protocol'
import type { RunOptions } from '@aworld-train/run'
import {
  countCallsOf,
  inRunDirectory,
  longPromptNotes,
  openTriedParts,
  type RolloutParts,
  type RunDirectory,
  runVersions,
  summarizeCalls,
} from '@aworld-train/run'
import { keepTokenizer, writeJsonAtomically } from '@aworld-train/store'
import { evaluationMetrics, evaluationRequests, type LoadedDataset, summarizeEvaluation, writeParquet } from '@aworld-train/training'
import type { LocalPlan } from './plan.ts'
import { openStage } from './stage.ts'

/** The report of an inference: one row for each rollout, and the mean reward where there was one. */
export interface InferenceReport {
  readonly version: 1
  readonly path: string
  readonly seed: number
  readonly sampling: Sampling
  readonly tasks: number
  /** Rollouts of all tasks. */
  readonly rollouts: number
  /** Rollouts without a reward, which count as reward 0. */
  readonly failed: number
  /** Mean over tasks; `null` where no rollout was scored. */
  readonly reward: number | null
  readonly interval: readonly [number, number] | null
  /** Chance that at least one of k samples of a task has reward 1 or more; unbiased estimate. */
  readonly passAtK: Readonly<Record<string, number>>
  readonly results: readonly {
    readonly taskId: string
    readonly sample: number
    readonly answer: string | null
    readonly reward: number | null
    readonly stopReason: string
  }[]
  readonly counts: Pick<RunReport['counts'], 'modelCalls' | 'toolCalls'>
  readonly tokenReport: TokenReport
  readonly times: { readonly wallMs: number }
  readonly versions: Readonly<Record<string, string>>
}

export interface InferenceRequest {
  readonly runPath: string
  readonly options: RunOptions
  readonly dataset: LoadedDataset
  readonly signal: AbortSignal
  /** Rollouts of each task; `evaluation.samplesPerPrompt` by default. */
  readonly samplesPerPrompt?: number | undefined
  /** Model folder to use instead of the plan's. */
  readonly model?: string | undefined
}

/** Runs the agent over a dataset with the policy as it is. A run that cannot start leaves nothing. */
export async function runInference(plan: LocalPlan, request: InferenceRequest): Promise<InferenceReport> {
  const model = request.model ?? plan.model
  if (model === null) {
    throw new TrainError(
      'CONFIG_INVALID',
      'There is no model yet: the warm-up makes it when you train. Train first, then name the run with --checkpoint, or set model.path.',
    )
  }
  const { runPath, signal, options } = request
  await using stack = new AsyncDisposableStack()
  const parts = await openTriedParts(stack, plan, { signal, onEvent: options.onEvent })
  const directory = {
    runPath,
    name: `${plan.name}-eval`,
    configurationHash: 'inference',
    provenance: { seed: plan.seed, agent: plan.agentModule, tasks: request.dataset.tasks.length },
    sandboxes: parts.environment.sandboxes(),
    options: { ...options, fresh: true, resume: undefined },
    signal,
  }
  return await inRunDirectory(directory, (run) => inferInRun(plan, { ...request, parts, model }, run))
}

interface InferenceParts extends InferenceRequest {
  readonly parts: RolloutParts
  readonly model: string
}

async function inferInRun(plan: LocalPlan, { parts, model, ...request }: InferenceParts, run: RunDirectory): Promise<InferenceReport> {
  const startedAt = Date.now()
  const { path, store, emit } = run
  const { config, seed } = plan
  const samples = request.samplesPerPrompt ?? config.evaluation.samplesPerPrompt
  await using stack = new AsyncDisposableStack()
  await keepTokenizer(path, model)
  await writeParquet(request.dataset.tasks, request.dataset.answers, join(path, 'test_data.parquet'))
  const stage = stack.adopt(
    await openStage({ model, plan, parts, store, answers: request.dataset.answers, onEvent: emit, signal: request.signal }),
    (each) => each.close(),
  )
  if (request.options.checkpoint !== undefined) {
    const { learner } = stage.policy
    await learner.load(resolve(request.options.checkpoint))
    await learner.publish()
  }
  const notes = longPromptNotes([request.dataset], stage)
  run.started()
  for (const message of notes) emit({ type: 'warning-raised', at: Date.now(), code: 'CONFIG_NOTE', message })
  const sampling: Sampling = {
    temperature: config.evaluation.temperature,
    topP: config.evaluation.topP,
    topK: config.evaluation.topK,
    maxTokens: config.sampling.maxTokens,
    stop: [],
    seed,
  }
  const evaluation = {
    name: 'eval',
    split: 'test',
    step: 0,
    tasks: request.dataset.tasks,
    sampling,
    samplesPerPrompt: samples,
    policy: stage.policy.engine.name,
    limits: {},
    kindKey: config.evaluation.kindKey,
  }
  const requests = evaluationRequests(evaluation)
  emit({ type: 'evaluation-start', at: Date.now(), name: evaluation.name, rollouts: requests.length })
  const episodes = await stage.runner.runAll(requests, request.signal)
  const { calls, tokenReport } = summarizeCalls(await countCallsOf(stage), episodes)
  const result = summarizeEvaluation(evaluation, episodes)
  const isScored = episodes.some(({ reward }) => reward !== null)
  const report: InferenceReport = {
    version: 1,
    path,
    seed,
    sampling,
    tasks: result.tasks,
    rollouts: result.rollouts,
    failed: result.failed,
    reward: isScored ? result.reward : null,
    interval: isScored ? result.interval : null,
    passAtK: isScored ? passRates(episodes, samples) : {},
    results: episodes.map(({ taskId, sample, answer, reward, stopReason }) => ({ taskId, sample, answer, reward, stopReason })),
    counts: calls,
    tokenReport,
    times: { wallMs: Date.now() - startedAt },
    versions: runVersions(),
  }
  await writeJsonAtomically(join(path, 'report.json'), report)
  await store.complete()
  const { tasks, rollouts, failed } = result
  const metrics = isScored ? evaluationMetrics(result) : { tasks, rollouts, failed }
  const passes = Object.fromEntries(Object.entries(report.passAtK).map(([k, value]) => [`pass@${k}`, value]))
  emit({ type: 'evaluation-end', at: Date.now(), name: evaluation.name, step: 0, metrics: { ...metrics, ...passes } })
  return report
}

/** pass@k for each k up to the samples of a task; a rollout is right with reward 1 or more. */
function passRates(episodes: readonly Episode[], samples: number): Record<string, number> {
  const groups = [...Map.groupBy(episodes, ({ taskId }) => taskId).values()]
  const isRight = ({ reward }: Episode) => reward !== null && reward >= 1
  const ks = [1, 2, 4, 8, 16, 32, 64].filter((k) => k <= samples)
  return Object.fromEntries(
    ks.map((k) => {
      const estimates = groups.map((group) => passAtK(group.length, group.filter(isRight).length, k))
      return [String(k), estimates.reduce((sum, value) => sum + value, 0) / (estimates.length || 1)]
    }),
  )
}
