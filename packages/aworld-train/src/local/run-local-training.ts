import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { messageModels } from '@aworld-train/core'
import { type RunEvent, type RunReport, toTrainError } from '@aworld-train/protocol'
import { type OwnedRunStore, openRunStore, resolveRun, toStoreError, writeJsonAtomically } from '@aworld-train/store'
import { type SelfDrivenResult, trainSelfDriven } from '@aworld-train/training'
import type { RunOptions } from '../run-options.ts'
import { configurationHash } from './configuration-hash.ts'
import { firstFailure } from './first-failure.ts'
import type { LocalPlan } from './plan.ts'
import { displayPath, removeUnfinished, runVersions, writeRunFiles } from './run-files.ts'
import { describeRun, summarizeCalls } from './run-report.ts'
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
  const hash = configurationHash(plan)
  const run = await resolveRun({ runPath, name: plan.name, configurationHash: hash, fresh: options.fresh, resume: options.resume })
  const progress = { started: false }
  try {
    return await trainInRun(plan, { ...request, ...run, configurationHash: hash, progress })
  } catch (error) {
    if (!run.resumed && !progress.started && !signal.aborted) await rm(run.path, { recursive: true, force: true })
    throw firstFailure(error)
  }
}

interface RunRequest extends LocalTrainingRequest {
  readonly path: string
  readonly resumed: boolean
  readonly configurationHash: string
  /** `started` is set once everything that the run needs is there. */
  readonly progress: { started: boolean }
}

async function trainInRun(plan: LocalPlan, request: RunRequest): Promise<RunReport> {
  const { options, signal, path, progress } = request
  const startedAt = Date.now()
  const cpuAtStart = process.cpuUsage()
  await using stack = new AsyncDisposableStack()
  const store = stack.adopt(
    await openRunStore({
      path,
      manifest: {
        name: plan.name,
        configurationHash: request.configurationHash,
        versions: runVersions(),
        provenance: { seed: plan.seed, agent: plan.agentModule, tasks: plan.train.tasks.length },
      },
    }),
    (each) => each.close(),
  )
  const emit = (event: RunEvent) => {
    store.appendEvent(event)
    options.onEvent?.(event)
  }
  const warmUpMs = { value: 0 }
  try {
    await removeUnfinished(path)
    await writeRunFiles(path, plan)
    const model = plan.model ?? (await makeModel(plan, path, store, { emit, signal, warmUpMs }))
    const reward = stack.adopt(await plan.createReward(), (each) => each.close())
    const answers = new Map([...plan.train.answers, ...(plan.validation?.answers ?? []), ...(plan.test?.answers ?? [])])
    const sampler = createEpisodeSampler(store, emit)
    const stage = stack.adopt(
      await openStage({
        model,
        plan,
        reward,
        store,
        answers,
        onEvent: sampler.onEvent,
      }),
      (each) => each.close(),
    )
    progress.started = true
    emit({
      type: 'run-start',
      version: 1,
      at: Date.now(),
      run: plan.name,
      path: displayPath(path),
      seed: plan.seed,
      resumedFromStep: store.steps().at(-1)?.step ?? null,
      details: describeRun(plan, stage, model),
    })
    for (const message of plan.notes) emit({ type: 'warning-raised', at: Date.now(), code: 'CONFIG_NOTE', message })

    const leaveReport = async (result: SelfDrivenResult): Promise<RunReport> => {
      const report = await toRunReport(result)
      await writeJsonAtomically(join(path, 'report.json'), report)
      return report
    }
    const toRunReport = async (result: SelfDrivenResult): Promise<RunReport> => {
      const cpu = process.cpuUsage(cpuAtStart)
      const { calls, tokenReport } = await summarizeCalls(stage, store.episodes(), startedAt)
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
          wallMs: Date.now() - startedAt,
          cpuMs: (cpu.user + cpu.system) / 1000,
          phasesMs: { ...(warmUpMs.value > 0 ? { 'warm-up': warmUpMs.value } : {}), ...result.phasesMs },
        },
        checkpoints: [...result.checkpoints],
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
      onEvent: sampler.onEvent,
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
  } catch (error) {
    const failure = isSystemError(error) ? toStoreError(error, path) : toTrainError(error, 'AGENT_FAILED')
    const end = signal.aborted ? { status: 'stopped' as const } : { status: 'failed' as const, error: failure.toRecord() }
    emit({ type: 'run-end', at: Date.now(), ...end })
    throw failure
  }
}

/** An error of the file system, such as a full disk, that no package has wrapped. */
function isSystemError(error: unknown): boolean {
  const { code, errno } = error as NodeJS.ErrnoException
  return typeof code === 'string' && typeof errno === 'number'
}

/** After step 1 and then every tenth step, shows one training episode of that step, another place in it each time. */
function createEpisodeSampler(store: OwnedRunStore, emit: (event: RunEvent) => void): { onEvent: (event: RunEvent) => void } {
  let finished: string[] = []
  return {
    onEvent(event) {
      emit(event)
      if (event.type === 'step-start') finished = []
      if (event.type === 'rollout-end' && event.split === 'train') finished.push(event.rollout)
      if (event.type !== 'step-end' || (event.step !== 1 && event.step % 10 !== 0)) return
      const chosen = finished.sort()[(event.step * 37) % (finished.length || 1)]
      const episode = chosen === undefined ? null : store.episode(chosen)
      if (!episode) return
      const { rollout, taskId, reward, messages } = episode
      emit({ type: 'episode-sampled', at: Date.now(), rollout, taskId, step: event.step, reward, messages, models: messageModels(episode) })
    },
  }
}
