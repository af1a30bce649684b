import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import {
  displayPath,
  type Episode,
  type InferenceReport,
  isInfrastructureFailure,
  isUnscored,
  passRates,
  RunReport,
  type Sampling,
  TrainError,
  toEndedRollout,
} from '@aworld-train/core'
import { keepTokenizer, writeJsonAtomically } from '@aworld-train/store'
import {
  countCallsOf,
  describeAgents,
  evaluationMetrics,
  evaluationRequests,
  inTriedRun,
  type LoadedDataset,
  longPromptWarnings,
  type RolloutParts,
  type RunDirectory,
  type RunRequest,
  raiseFindings,
  requireOutcome,
  requireResults,
  runVersions,
  summarizeCalls,
  summarizeEvaluation,
  writeParquet,
} from '@aworld-train/training'
import type { LocalPlan } from './plan.ts'
import { policyOfAgent } from './run-report.ts'
import { openStage } from './stage.ts'

export interface InferenceRequest extends RunRequest {
  readonly dataset: LoadedDataset
  /** Rollouts of each task. Default: `evaluation.samplesPerPrompt`. */
  readonly samplesPerPrompt?: number | undefined
  /** Model folders that replace the plan's, one for each policy. */
  readonly models?: readonly string[] | undefined
  /** Folder that a learner has saved. Its weights are sampled in place of the model's. */
  readonly checkpoint?: string | undefined
}

/**
 * Runs the agent over a dataset with the policy as it is. A run that cannot start leaves nothing. A run whose rollouts all fail leaves its
 * report and rejects with EVALUATION_FAILED.
 */
export async function runInference(plan: LocalPlan, request: InferenceRequest): Promise<InferenceReport> {
  const models = request.models ?? modelsOf(plan, request.checkpoint)
  if (!models.every((model) => model !== null)) {
    const keys = plan.policies.flatMap(({ name }, index) => (models[index] === null ? [name === null ? 'model' : `policies.${name}`] : []))
    throw new TrainError(
      'CONFIG_INVALID',
      `There is no model yet: the warm-up makes it when you train. Train first, then name the run with --checkpoint, or set ${keys.map((key) => `${key}.path`).join(' and ')}.`,
    )
  }
  const { runPath, signal, options } = request
  const tried = {
    runPath,
    signal,
    kind: 'evaluation' as const,
    name: `${plan.name}-eval`,
    configurationHash: 'inference',
    provenance: { seed: plan.seed, agent: plan.agent.module, tasks: request.dataset.tasks.length },
    options: { ...options, fresh: true, resume: undefined },
  }
  return await inTriedRun(plan, tried, (run, parts) => inferInRun(plan, { ...request, parts, models }, run))
}

/** The model of each policy. A checkpoint of several is loaded into the models that its run began with, of which some are not trained. */
function modelsOf({ policies }: LocalPlan, checkpoint: string | undefined): (string | null)[] {
  if (checkpoint === undefined || policies[0].name === null) return policies.map(({ model }) => model)
  const run = runOf(resolve(checkpoint))
  const { data } = RunReport.safeParse(run && readJson(join(run, 'report.json')))
  return policies.map(({ name, model }) => {
    const found = [data?.policies?.[name!]?.model, model, run && join(run, 'models', name!)]
    return found.find((folder) => folder != null && existsSync(folder)) ?? null
  })
}

/** The run that a folder is in, or `null`: the nearest folder with a manifest. The name of a checkpoint may have slashes. */
function runOf(folder: string): string | null {
  if (existsSync(join(folder, 'manifest.json'))) return folder
  const parent = dirname(folder)
  return parent === folder ? null : runOf(parent)
}

function readJson(path: string): unknown {
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : null
}

interface InferenceParts extends InferenceRequest {
  readonly parts: RolloutParts
  readonly models: readonly string[]
}

async function inferInRun(plan: LocalPlan, { parts, models, ...request }: InferenceParts, run: RunDirectory): Promise<InferenceReport> {
  const startedAt = Date.now()
  const { path, store, emit } = run
  const { config, seed } = plan
  const samples = request.samplesPerPrompt ?? config.evaluation.samplesPerPrompt
  await using stack = new AsyncDisposableStack()
  for (const [index, { name }] of plan.policies.entries()) await keepTokenizer(path, models[index]!, name)
  await writeParquet(request.dataset.tasks, request.dataset.answers, join(path, 'test_data.parquet'))
  const stage = stack.adopt(
    await openStage({ models, plan, parts, store, answers: request.dataset.answers, onEvent: emit, signal: request.signal }),
    (each) => each.close(),
  )
  const checkpoint = request.checkpoint === undefined ? null : resolve(request.checkpoint)
  if (checkpoint !== null) {
    const { learner } = stage.policy
    await learner.load(checkpoint)
    await learner.publish()
  }
  const warnings = longPromptWarnings([request.dataset], stage.promptModel)
  run.started()
  emit({
    type: 'run-start',
    version: 1,
    at: Date.now(),
    run: `${plan.name}-eval`,
    path: displayPath(path),
    seed,
    resumedFromStep: null,
    details: {
      ...stage.policy.details,
      ...(checkpoint !== null && { checkpoint: displayPath(checkpoint) }),
      agent: describeAgents(plan.program.agents, null),
      tasks: `${request.dataset.tasks.length} to evaluate`,
      seed,
    },
    ...(stage.policy.members && { policyOfAgent: policyOfAgent(plan) }),
  })
  raiseFindings(emit, { notes: [], warnings })
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
  requireOutcome(evaluation.name, episodes)
  const { calls, tokenReport } = summarizeCalls(await countCallsOf(stage), episodes)
  const result = summarizeEvaluation(evaluation, episodes)
  const isScored = episodes.some(({ reward }) => reward !== null)
  const { tasks, rollouts, failed, unscored, failures, byKind } = result
  const report: InferenceReport = {
    version: 1,
    kind: 'evaluation',
    model: models.length === 1 ? models[0]! : null,
    checkpoint,
    ...(stage.policy.members && {
      policies: Object.fromEntries(
        plan.policies.map(({ name, trainable }, index) => [
          name!,
          { model: models[index]!, checkpoint: checkpoint !== null && trainable ? join(checkpoint, name!) : null },
        ]),
      ),
    }),
    path,
    seed,
    sampling,
    tasks,
    rollouts,
    failed,
    unscored,
    failures,
    byKind,
    ...(result.counted && { counted: result.counted }),
    reward: isScored ? result.reward : null,
    interval: isScored ? result.interval : null,
    passAtK: isScored ? passRates(rewardsOfTasks(episodes)) : {},
    results: episodes.map(({ taskId, sample, answer, reward, stopReason }) => ({ taskId, sample, answer, reward, stopReason })),
    counts: calls,
    tokenReport,
    times: { wallMs: Date.now() - startedAt },
    versions: runVersions(),
  }
  await writeJsonAtomically(join(path, 'report.json'), report)
  const metrics = isScored ? evaluationMetrics(result) : { tasks, rollouts, failed }
  const passes = Object.fromEntries(Object.entries(report.passAtK).map(([k, value]) => [`pass@${k}`, value]))
  emit({
    type: 'evaluation-end',
    at: Date.now(),
    name: evaluation.name,
    step: 0,
    metrics: { ...metrics, ...passes },
    ...(failures.length > 0 && { failures }),
  })
  requireResults(result)
  await store.complete()
  emit({ type: 'run-end', at: Date.now(), status: 'finished' })
  return report
}

/** Rewards of each task's rollouts that have an outcome; a failed one has 0. */
const rewardsOfTasks = (episodes: readonly Episode[]): number[][] =>
  [
    ...Map.groupBy(
      episodes.filter((episode) => !isInfrastructureFailure(episode)),
      ({ taskId }) => taskId,
    ).values(),
  ].map((group) => group.filter((episode) => !isUnscored(toEndedRollout(episode))).map(({ reward }) => reward ?? 0))
