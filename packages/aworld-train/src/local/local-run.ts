import { join } from 'node:path'
import { displayPath } from '@aworld-train/core'
import type { RunEvent, RunReport } from '@aworld-train/protocol'
import {
  createEpisodeSampler,
  inTriedRun,
  longPromptWarnings,
  makeModel,
  openRunAccounts,
  openRunLogs,
  type RolloutParts,
  type RunDirectory,
  type RunRequest,
  raiseFindings,
  removeUnfinished,
  runVersions,
  watchCollapse,
  watchHealth,
  watchTruncation,
} from '@aworld-train/run'
import { keepTokenizer, type OwnedRunStore, writeJsonAtomically } from '@aworld-train/store'
import { listCheckpoints, type SelfDrivenResult } from '@aworld-train/training'
import { inputHashes } from './configuration-hash.ts'
import type { LocalPlan } from './plan.ts'
import { describeRun } from './run-report.ts'
import { openStage, type Stage } from './stage.ts'
import { writeRunFiles } from './write-run-files.ts'

/** A run over the policy in the box, with all parts between the agent and the policy. */
export interface LocalRun {
  readonly path: string
  readonly store: OwnedRunStore
  readonly stage: Stage
  /** Keeps an event and shows it. */
  onEvent(event: RunEvent): void
  /** Calls `listener` with every event. */
  listen(listener: (event: RunEvent) => void): void
  /** Writes `report.json` and ends the run with its status. A finished run is not resumed. */
  end(result: SelfDrivenResult): Promise<RunReport>
  /** Writes `report.json` for a run that an error ends. */
  leaveReport(result: SelfDrivenResult): Promise<RunReport>
}

/**
 * Tries the parts of rollouts, starts or resumes the run that `configurationHash` identifies, makes the starting model if a warm-up is
 * named, and works in the run. A new run that cannot start leaves nothing.
 */
export async function inLocalRun<T>(
  plan: LocalPlan,
  request: RunRequest & { readonly configurationHash: string },
  work: (run: LocalRun) => Promise<T>,
): Promise<T> {
  const provenance = { seed: plan.seed, agent: plan.agentModule, tasks: plan.train.tasks.length }
  const tried = { ...request, name: plan.name, inputs: inputHashes(plan), provenance }
  return await inTriedRun(plan, tried, async (run, parts) => {
    await using opened = new AsyncDisposableStack()
    return await work(await openLocalRun(opened, plan, { parts, run, signal: request.signal }))
  })
}

interface LocalRunParts {
  readonly parts: RolloutParts
  readonly run: RunDirectory
  readonly signal: AbortSignal
}

async function openLocalRun(stack: AsyncDisposableStack, plan: LocalPlan, { parts, run, signal }: LocalRunParts): Promise<LocalRun> {
  const { path, store, emit } = run
  const startedAt = performance.now()
  const accounts = openRunAccounts(store)
  stack.defer(() => accounts.close())
  const warmUpMs = { value: 0 }
  await removeUnfinished(path)
  await writeRunFiles(path, plan)
  const modelAt = performance.now()
  const model = plan.model ?? (await makeModel({ ...plan, engine: plan.config.engine }, path, store, { emit, signal, warmUpMs }))
  const madeModelMs = performance.now() - modelAt
  await keepTokenizer(path, model)
  const answers = new Map([...plan.train.answers, ...(plan.validation?.answers ?? []), ...(plan.test?.answers ?? [])])
  const { maxTokens } = plan.config.sampling
  const remedy = `Raise sampling.maxTokens, which is ${maxTokens}; where the context of the model is full instead, shorten the prompts.`
  const collapses = watchCollapse(emit, { store, warnings: run.warnings, checkpoints: () => listCheckpoints(path) })
  const sampler = createEpisodeSampler(store, watchTruncation(collapses, remedy))
  const logs = await openRunLogs(stack, { path, name: plan.name, settings: plan.config, store, emit })
  const listeners = [logs.read, sampler.onEvent]
  const onEvent = (event: RunEvent) => {
    for (const listener of listeners) listener(event)
    accounts.touch()
  }
  const stage = stack.adopt(
    await openStage({
      model,
      plan,
      parts,
      store: accounts.counted(store),
      answers,
      onEvent,
      signal,
      served: { port: plan.config.gateway.port, registry: logs.registry },
    }),
    (each) => each.close(),
  )
  accounts.attach(stage)
  const { engine } = stage.policy
  watchHealth(stack, { store, emit, sources: { ...stage, engines: { [engine.model.name]: engine }, channel: null } })
  const longPrompts = longPromptWarnings([plan.train, plan.validation, plan.test], stage)
  run.started()
  const startMs = performance.now() - startedAt - madeModelMs
  emit({
    type: 'run-start',
    version: 1,
    at: Date.now(),
    run: plan.name,
    path: displayPath(path),
    seed: plan.seed,
    resumedFromStep: run.resumed ? (store.steps().at(-1)?.step ?? 0) : null,
    details: { ...describeRun(plan, stage), ...logs.details },
  })
  raiseFindings(emit, { notes: plan.notes, warnings: [...plan.warnings, ...longPrompts] })

  async function leaveReport(result: SelfDrivenResult): Promise<RunReport> {
    const { calls, tokenReport, repeatedAttempts, losses, wallMs, cpuMs } = await accounts.finish()
    const { before, after, greedyBefore, greedyAfter, curve, ledger, rollouts, episodesByStopReason } = result
    const report: RunReport = {
      version: 1,
      kind: 'training',
      model,
      checkpoint: result.lastCheckpoint,
      run: plan.name,
      path,
      status: result.status,
      seed: plan.seed,
      engine: stage.policy.engine.name,
      tier: { ...stage.policy.tier },
      before,
      after,
      greedyBefore,
      greedyAfter,
      curve,
      ledger,
      agents: { ...store.agentTokens() },
      failures: store.failures(),
      maxLogprobDifference: greatest(curve.flatMap(({ metrics }) => metrics['maxLogprobDifference'] ?? [])),
      tokenReport,
      counts: {
        rollouts,
        attempts: rollouts + repeatedAttempts,
        losses,
        ...(plan.config.training.firstSamples !== null && { notStarted: total(curve.map(({ metrics }) => metrics['notStarted'] ?? 0)) }),
        episodesByStopReason: { ...episodesByStopReason },
        ...calls,
      },
      times: {
        wallMs,
        cpuMs,
        phasesMs: allPhases(wallMs, { ...(warmUpMs.value > 0 && { 'warm-up': warmUpMs.value }), start: startMs, ...result.phasesMs }),
      },
      checkpoints: [...result.checkpoints],
      warnings: run.warnings(),
      versions: runVersions(),
    }
    await writeJsonAtomically(join(path, 'report.json'), report)
    return report
  }

  return {
    path,
    store,
    stage,
    onEvent,
    listen: (listener) => void listeners.push(listener),
    leaveReport,
    async end(result) {
      const report = await leaveReport(result)
      if (result.status === 'finished') await store.complete()
      emit({ type: 'run-end', at: Date.now(), status: result.status })
      return report
    },
  }
}

const greatest = (values: readonly number[]) => (values.length === 0 ? null : Math.max(...values))

const total = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0)

/** Phases with `other`, what of the wall time is in none of them: they add up to it. */
function allPhases(wallMs: number, phases: Readonly<Record<string, number>>): Record<string, number> {
  return { ...phases, other: Math.max(0, wallMs - total(Object.values(phases))) }
}
