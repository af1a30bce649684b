import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { displayPath } from '@aworld-train/core'
import { errorMessage, type RunEvent, type RunReport, TrainError } from '@aworld-train/protocol'
import type { RunOptions } from '@aworld-train/run'
import {
  createEpisodeSampler,
  createFailureTally,
  createIdleClock,
  inRunDirectory,
  makeModel,
  openRunAccounts,
  openTriedParts,
  type RolloutParts,
  type RunDirectory,
  removeUnfinished,
  watchHealth,
  watchTruncation,
} from '@aworld-train/run'
import {
  bridgeDirectory,
  createVerlProgress,
  judgeStart,
  resumableStep,
  sweepVerl,
  type VerlPlan,
  valueAt,
  writeRunFiles,
} from '@aworld-train/trainer-verl'
import { createRunWatch, followVerl } from './follow-verl.ts'
import { planRun } from './plan-run.ts'
import { createRowTasks } from './row-tasks.ts'
import { checkModelPrompts } from './starting-model.ts'
import { verlConfigurationHash } from './verl-configuration-hash.ts'
import { createVerlHistory } from './verl-history.ts'
import { keepPhases, leaveVerlReport } from './verl-report.ts'
import { openVerlStage, type VerlStage } from './verl-stage.ts'
import type { VerlTrainingPlan } from './verl-training-plan.ts'

/** What a run with verl keeps for later readers. */
export interface VerlRunState {
  /** Folder of verl's checkpoints. */
  readonly checkpoints: string
  /** The model that the training began with. */
  readonly model: string
  readonly python: string
}

/** The key of this record in the store. */
export const verlStateKey = 'verl-run'

export interface VerlTrainingRequest {
  readonly runPath: string
  readonly options: RunOptions
  readonly signal: AbortSignal
}

/** Runs a plan in a run directory: starts or resumes it, serves rollouts to verl until that has ended, and leaves `report.json`. A new run that cannot start leaves nothing. */
export async function runVerlTraining(plan: VerlTrainingPlan, { runPath, options, signal }: VerlTrainingRequest): Promise<RunReport> {
  const { agent, seed, train, python } = plan
  const lacks = await judgeStart(plan, { python: python.path, signal })
  if (lacks.length > 0) throw new TrainError('TRAINER_ENVIRONMENT', lacks.join('\n'))
  const provenance = { seed, agent: agent.module, tasks: train.tasks.length, python: python.path, packages: python.report.packages }
  await using stack = new AsyncDisposableStack()
  const rewardSource = plan.reward?.source ?? null
  const parts = await openTriedParts(stack, { ...plan, rewardSource }, { signal, onEvent: options.onEvent })
  const directory = {
    runPath,
    name: plan.name,
    configurationHash: verlConfigurationHash(plan),
    provenance,
    sandboxes: parts.environment.sandboxes(),
    options,
    signal,
  }
  return await inRunDirectory(directory, (run) => trainWithVerl(plan, parts, run, signal))
}

async function trainWithVerl(plan: VerlTrainingPlan, parts: RolloutParts, run: RunDirectory, signal: AbortSignal): Promise<RunReport> {
  const { store, emit, warnings } = run
  // verl works in the run's folder, so a relative path would lead elsewhere.
  const path = resolve(run.path)
  await using stack = new AsyncDisposableStack()
  const accounts = openRunAccounts(store)
  stack.defer(() => accounts.close())
  await removeUnfinished(path)
  const history = createVerlHistory(store, path)
  const earlier = history.incarnations().map(({ incarnation }) => incarnation)
  await sweepVerl({ python: plan.python.path, bridgeDirectory, incarnations: earlier })
  const warmUpMs = { value: 0 }
  const engine = { simd: 'auto' as const, threads: null }
  const model =
    plan.model ?? (await makeModel({ ...plan, configDirectory: plan.config.directory, engine }, path, store, { emit, signal, warmUpMs }))
  // The prompts for a model that existed before were measured with the configuration.
  const tasks = [...plan.train.tasks, ...(plan.test?.tasks ?? [])]
  const promptNotes = plan.model === null ? await checkModelPrompts(plan.config, model, tasks) : []
  const incarnation = randomUUID()
  const name = basename(path)
  const verlPlan = await planRun(plan, { path, name, model, incarnation, resume: run.resumed }, signal)
  await writeRunFiles(verlPlan, plan)
  const resumedFromStep = resumableStep(verlPlan.checkpoints)
  const sampler = createEpisodeSampler(store, watchTruncation(emit, longerAnswers(plan, verlPlan)))
  const watch = createRunWatch()
  const failures = createFailureTally()
  const idle = createIdleClock()
  const steps = verlPlan.steps ?? 0
  const progress = createVerlProgress({
    steps,
    resumedFromStep,
    evaluation: evaluationSize(plan, verlPlan),
    onEvent: sampler.onEvent,
    measured: () => ({ idleMs: idle.take() }),
    onStep: ({ saved }) => {
      void keepPhases(store, incarnation, progress.phasesMs()).catch(warn)
      if (saved) void history.commit(resumableStep(verlPlan.checkpoints)).catch(warn)
    },
  })
  const warn = (error: unknown) => emit({ type: 'warning-raised', at: Date.now(), code: 'STORE_FAILED', message: errorMessage(error) })
  const stage = stack.adopt(
    await openVerlStage({
      plan,
      model,
      isFolder: existsSync(join(model, 'config.json')),
      parts,
      store,
      path,
      toTask: createRowTasks(plan),
      onEvent(event) {
        watch.alive()
        failures.read(event)
        if (event.type === 'rollout-start') idle.rollouts(1)
        if (event.type === 'rollout-end') idle.rollouts(-1)
        sampler.onEvent(event)
        accounts.touch()
        if (event.type === 'rollout-start') progress.queued(event.split === 'train' ? 'train' : 'val')
      },
      onCalls: idle.calls,
      onRefused: (error) => watch.fail(error),
    }),
    (each) => each.close(),
  )
  accounts.attach(stage)
  watchHealth(stack, store, { ...stage, engines: { [stage.engine.name]: stage.engine } })
  run.started()
  await history.commit(resumedFromStep).catch(warn)
  await store.setState(verlStateKey, { checkpoints: verlPlan.checkpoints, model, python: plan.python.path } satisfies VerlRunState)
  await store.discardStepsAfter(resumedFromStep)
  await history.begin({ incarnation, resumedFromStep })
  emit(startEvent({ plan, verlPlan, stage, model, path, resumedFromStep, resumed: run.resumed }))
  for (const message of new Set([...plan.config.notes, ...plan.findings, ...promptNotes, ...verlPlan.notes]))
    emit({ type: 'warning-raised', at: Date.now(), code: 'CONFIG_NOTE', message })

  const { python } = plan
  const exit = await followVerl({ python: python.path, verlPlan, address: stage.address, path, name, incarnation, progress, watch, signal })
  const finished = exit.error === null && !exit.stopped
  // A step that cannot be kept is reported, and shown in the ledger; its training cannot be undone.
  if (finished) await history.commit(Number.POSITIVE_INFINITY).catch(warn)
  const status = finished ? 'finished' : exit.stopped ? 'stopped' : 'failed'
  const report = await leaveVerlReport({
    plan,
    verlPlan,
    store,
    path,
    status,
    history,
    progress,
    accounts,
    warmUpMs: warmUpMs.value,
    warnings,
    warn: (code, message) => emit({ type: 'warning-raised', at: Date.now(), code, message }),
  })
  if (exit.error) throw failures.explain(exit.error)
  if (finished) await store.complete()
  emit({ type: 'run-end', at: Date.now(), status })
  return report
}

interface StartDescription {
  readonly plan: VerlTrainingPlan
  readonly verlPlan: VerlPlan
  readonly stage: VerlStage
  readonly model: string
  readonly path: string
  readonly resumedFromStep: number
  readonly resumed: boolean
}

function startEvent({ plan, verlPlan, stage, model, path, resumedFromStep, resumed }: StartDescription): RunEvent {
  const { packages } = plan.python.report
  return {
    type: 'run-start',
    version: 1,
    at: Date.now(),
    run: plan.name,
    path: displayPath(path),
    seed: plan.seed,
    resumedFromStep: resumed ? resumedFromStep : null,
    details: {
      policy: displayPath(model),
      trainer: `verl ${packages['verl'] ?? 'of unknown version'}, ${plan.python.path}`,
      gateway: stage.gateway.url,
      agent: plan.program.agents.flatMap(({ name, trainable }) => (trainable ? [name] : [])).join(', '),
      tasks: `${plan.train.tasks.length} to train, ${plan.test?.tasks.length ?? 0} held out`,
      steps: verlPlan.steps ?? 'as many as verl finds',
      seed: plan.seed,
    },
  }
}

function longerAnswers({ config }: VerlTrainingPlan, { tree }: VerlPlan): string {
  const { maxCompletionTokens } = config.settings
  const completion = maxCompletionTokens === null ? '' : `, or sampling.maxTokens, which is ${maxCompletionTokens}`
  return `Raise data.max_response_length, which is ${valueAt(tree, 'data.max_response_length')}${completion}.`
}

function evaluationSize({ test }: VerlTrainingPlan, { tree }: VerlPlan): { tasks: number; rollouts: number } {
  const n = valueAt(tree, 'actor_rollout_ref.rollout.val_kwargs.n')
  const tasks = test?.tasks.length ?? 0
  return { tasks, rollouts: tasks * (typeof n === 'number' ? n : 1) }
}
