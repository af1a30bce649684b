import { join } from 'node:path'
import type { RunEvent, RunReport } from '@aworld-train/protocol'
import { writeJsonAtomically } from '@aworld-train/store'
import { type SelfDrivenResult, trainSelfDriven } from '@aworld-train/training'
import { longPromptNotes } from '../checks/long-prompts.ts'
import type { RunOptions } from '../run-options.ts'
import { createEpisodeSampler } from '../stage/episode-sampler.ts'
import { openTriedParts, type RolloutParts } from '../stage/rollout-parts.ts'
import { openRunAccounts } from '../stage/run-accounts.ts'
import { inRunDirectory, type RunDirectory } from '../stage/run-directory.ts'
import { watchTruncation } from '../stage/truncation-watch.ts'
import { configurationHash } from './configuration-hash.ts'
import type { LocalPlan } from './plan.ts'
import { displayPath, removeUnfinished, runVersions, writeRunFiles } from './run-files.ts'
import { describeRun } from './run-report.ts'
import { openStage } from './stage.ts'
import { makeModel } from './starting-model.ts'

export interface LocalTrainingRequest {
  readonly runPath: string
  readonly options: RunOptions
  readonly signal: AbortSignal
}

/** Runs a plan in a run directory: starts or resumes it, trains, evaluates, and leaves `report.json`. A new run that cannot start leaves nothing. */
export async function runLocalTraining(plan: LocalPlan, request: LocalTrainingRequest): Promise<RunReport> {
  const { options, runPath, signal } = request
  await using stack = new AsyncDisposableStack()
  const parts = await openTriedParts(stack, plan, { signal, onEvent: options.onEvent })
  const provenance = { seed: plan.seed, agent: plan.agentModule, tasks: plan.train.tasks.length }
  const directory = { runPath, name: plan.name, configurationHash: configurationHash(plan), provenance, options, signal }
  return await inRunDirectory(directory, (run) => trainInRun(plan, parts, run, signal))
}

async function trainInRun(
  plan: LocalPlan,
  parts: RolloutParts,
  { path, resumed, store, emit, warnings, started }: RunDirectory,
  signal: AbortSignal,
): Promise<RunReport> {
  await using stack = new AsyncDisposableStack()
  const accounts = openRunAccounts(store)
  stack.defer(() => accounts.close())
  const warmUpMs = { value: 0 }
  await removeUnfinished(path)
  await writeRunFiles(path, plan)
  const model = plan.model ?? (await makeModel({ ...plan, engine: plan.config.engine }, path, store, { emit, signal, warmUpMs }))
  const answers = new Map([...plan.train.answers, ...(plan.validation?.answers ?? []), ...(plan.test?.answers ?? [])])
  const { maxTokens } = plan.config.sampling
  const remedy = `Raise sampling.maxTokens, which is ${maxTokens}; where the context of the model is full instead, shorten the prompts.`
  const sampler = createEpisodeSampler(store, watchTruncation(emit, remedy))
  const onEvent = (event: RunEvent) => {
    sampler.onEvent(event)
    accounts.touch()
  }
  const stage = stack.adopt(await openStage({ model, plan, parts, store, answers, onEvent }), (each) => each.close())
  accounts.attach(stage)
  const notes = [...plan.notes, ...longPromptNotes([plan.train, plan.validation, plan.test], stage)]
  started()
  emit({
    type: 'run-start',
    version: 1,
    at: Date.now(),
    run: plan.name,
    path: displayPath(path),
    seed: plan.seed,
    resumedFromStep: resumed ? (store.steps().at(-1)?.step ?? 0) : null,
    details: describeRun(plan, stage, model),
  })
  for (const message of notes) emit({ type: 'warning-raised', at: Date.now(), code: 'CONFIG_NOTE', message })

  const leaveReport = async (result: SelfDrivenResult): Promise<RunReport> => {
    const report = await toRunReport(result)
    await writeJsonAtomically(join(path, 'report.json'), report)
    return report
  }
  const toRunReport = async (result: SelfDrivenResult): Promise<RunReport> => {
    const { calls, tokenReport, wallMs, cpuMs } = await accounts.finish()
    return {
      version: 1,
      run: plan.name,
      path,
      status: result.status,
      seed: plan.seed,
      engine: stage.local.engine.name,
      tier: { ...stage.local.tier },
      before: result.before,
      after: result.after,
      greedyBefore: result.greedyBefore,
      greedyAfter: result.greedyAfter,
      curve: result.curve,
      ledger: result.ledger,
      tokenReport,
      counts: {
        rollouts: result.rollouts,
        episodesByStopReason: { ...result.episodesByStopReason },
        ...calls,
      },
      times: {
        wallMs,
        cpuMs,
        phasesMs: { ...(warmUpMs.value > 0 ? { 'warm-up': warmUpMs.value } : {}), ...result.phasesMs },
      },
      checkpoints: [...result.checkpoints],
      warnings: warnings(),
      versions: runVersions(),
    }
  }
  let failed: SelfDrivenResult | undefined
  const result = await trainSelfDriven({
    learner: stage.local.learner,
    reference: stage.reference,
    engine: stage.local.engine,
    gateway: stage.gateway,
    runner: stage.runner,
    store,
    tasks: plan.train.tasks,
    evaluation: { test: plan.test?.tasks, validation: plan.validation?.tasks },
    config: plan.config,
    seed: plan.seed,
    signal,
    onEvent,
    onFailure: (committed) => {
      failed = committed
    },
  }).catch(async (error: unknown) => {
    // A disk that is full takes no report either; the error is what counts.
    if (failed) await leaveReport(failed).catch(() => {})
    throw error
  })
  const report = await leaveReport(result)
  if (result.status === 'finished') await store.complete()
  emit({ type: 'run-end', at: Date.now(), status: result.status })
  return report
}
