import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { meanWithInterval, passAtK } from '@aworld-train/core'
import { type Episode, type RunEvent, type RunReport, type Sampling, type TokenReport, TrainError } from '@aworld-train/protocol'
import { openRunStore, resolveRun, writeJsonAtomically } from '@aworld-train/store'
import { type LoadedDataset, writeParquet } from '@aworld-train/training'
import type { RunOptions } from '../run-options.ts'
import { firstFailure } from './first-failure.ts'
import type { LocalPlan } from './plan.ts'
import { runVersions } from './run-files.ts'
import { summarizeCalls } from './run-report.ts'
import { openStage } from './stage.ts'

/** What inference leaves: one row a rollout, and the mean where there was a reward. */
export interface InferenceReport {
  readonly version: 1
  readonly path: string
  readonly seed: number
  readonly sampling: Sampling
  readonly rollouts: number
  readonly failed: number
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
  const { path } = await resolveRun({ runPath: request.runPath, name: `${plan.name}-eval`, configurationHash: 'inference', fresh: true })
  const progress = { started: false }
  try {
    return await inferInRun(plan, { ...request, path, model, progress })
  } catch (error) {
    if (!progress.started) await rm(path, { recursive: true, force: true })
    throw firstFailure(error)
  }
}

interface InferenceRun extends InferenceRequest {
  readonly path: string
  readonly model: string
  /** `started` is set once everything that the run needs is there. */
  readonly progress: { started: boolean }
}

async function inferInRun(plan: LocalPlan, { path, model, progress, ...request }: InferenceRun): Promise<InferenceReport> {
  const startedAt = Date.now()
  const { config, seed } = plan
  const samples = request.samplesPerPrompt ?? config.evaluation.samplesPerPrompt
  const emit = (event: RunEvent) => request.options.onEvent?.(event)
  await using stack = new AsyncDisposableStack()
  const store = stack.adopt(
    await openRunStore({ path, manifest: { name: plan.name, configurationHash: 'inference', versions: runVersions() } }),
    (each) => each.close(),
  )
  await writeParquet(request.dataset.tasks, request.dataset.answers, join(path, 'test_data.parquet'))
  const stage = stack.adopt(await openStage({ model, plan, store, answers: request.dataset.answers, onEvent: emit }), (each) =>
    each.close(),
  )
  progress.started = true
  const sampling: Sampling = {
    temperature: config.evaluation.temperature,
    topP: config.evaluation.topP,
    topK: config.evaluation.topK,
    maxTokens: config.sampling.maxTokens,
    stop: [],
    seed,
  }
  const requests = request.dataset.tasks.flatMap((task) =>
    Array.from({ length: samples }, (_, sample) => ({
      version: 1 as const,
      key: `eval-${task.id}-${sample}`,
      task,
      group: `eval-${task.id}`,
      sample,
      split: 'test',
      policy: stage.local.engine.name,
      sampling,
      limits: {},
    })),
  )
  emit({ type: 'evaluation-start', at: Date.now(), name: 'eval', rollouts: requests.length })
  const episodes = await stage.runner.runAll(requests, request.signal)
  const { calls, tokenReport } = await summarizeCalls(stage, episodes, startedAt)
  const report: InferenceReport = {
    version: 1,
    path,
    seed,
    sampling,
    ...summarize(episodes, samples),
    counts: calls,
    tokenReport,
    times: { wallMs: Date.now() - startedAt },
    versions: runVersions(),
  }
  await writeJsonAtomically(join(path, 'report.json'), report)
  await store.complete()
  emit({
    type: 'evaluation-end',
    at: Date.now(),
    name: 'eval',
    step: 0,
    metrics: {
      rollouts: report.rollouts,
      ...(report.reward === null ? {} : { reward: report.reward, low: report.interval?.[0] ?? 0, high: report.interval?.[1] ?? 0 }),
      ...Object.fromEntries(Object.entries(report.passAtK).map(([k, value]) => [`pass@${k}`, value])),
    },
  })
  return report
}

type InferenceSummary = Pick<InferenceReport, 'rollouts' | 'failed' | 'reward' | 'interval' | 'passAtK' | 'results'>

function summarize(episodes: readonly Episode[], samples: number): InferenceSummary {
  const rewards = episodes.map(({ reward }) => reward).filter((reward) => reward !== null)
  const interval = rewards.length > 0 ? meanWithInterval(rewards) : null
  const byTask = Map.groupBy(episodes, ({ taskId }) => taskId)
  const ks = [1, 2, 4, 8, 16, 32, 64].filter((k) => k <= samples)
  const pass = Object.fromEntries(
    ks.map((k) => {
      const estimates = [...byTask.values()].map((group) =>
        passAtK(group.length, group.filter(({ reward }) => reward !== null && reward >= 1).length, k),
      )
      return [String(k), estimates.reduce((sum, value) => sum + value, 0) / (estimates.length || 1)]
    }),
  )
  return {
    rollouts: episodes.length,
    failed: episodes.filter(({ stopReason }) => stopReason === 'failed').length,
    reward: interval?.mean ?? null,
    interval: interval?.interval ?? null,
    passAtK: rewards.length > 0 ? pass : {},
    results: episodes.map(({ taskId, sample, answer, reward, stopReason }) => ({ taskId, sample, answer, reward, stopReason })),
  }
}
