import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { displayPath, errorMessage, type RunReport, TrainError, type TrainerPlan } from '@aworld-train/core'
import {
  createFailureTally,
  createIdleClock,
  describeAgents,
  inTriedRun,
  makeModel,
  openRunAccounts,
  openRunSession,
  type RolloutParts,
  type RunDirectory,
  type RunRequest,
  removeUnfinished,
} from '@aworld-train/training'
import { sweepTrainer } from '../process/launch-trainer.ts'
import { bridgeDirectory } from '../python-package.ts'
import { announce } from './announce.ts'
import { trainerConfigurationHash, trainerInputHashes } from './configuration-hash.ts'
import { createRunWatch, followTrainer } from './follow-trainer.ts'
import { createTrainerHistory } from './history.ts'
import { describeAgent, planStart } from './plan-start.ts'
import { createTrainerProgress } from './progress.ts'
import { frameworkOf, keepPhases, leaveTrainerReport } from './report.ts'
import { createRowTasks } from './row-tasks.ts'
import { checkModelPrompts } from './starting-model.ts'
import { openTrainerStage } from './trainer-stage.ts'
import type { PythonTrainingPlan } from './training-plan.ts'

/** Record of a run with a framework, kept for later readers. */
export interface TrainerRunState {
  /** Folder of its checkpoints. */
  readonly checkpoints: string
  /** The model that the training began with. */
  readonly model: string
  readonly python: string
}

/** The key of this record in the store. */
export const trainerStateKey = (trainer: string) => `${trainer}-run`

/**
 * Runs a plan in a run directory: starts or resumes the run, serves rollouts to the framework until it ends, and writes `report.json`. A
 * new run that cannot start leaves nothing.
 */
export async function runPythonTraining(plan: PythonTrainingPlan, request: RunRequest): Promise<RunReport> {
  const { runPath, signal } = request
  const { trainer, agent, seed, train, python } = plan
  const machine = { python: python.path, env: process.env, directory: runPath, signal }
  const lacks = await trainer.lacks(plan.planned, machine)
  if (lacks.length > 0) throw new TrainError('TRAINER_ENVIRONMENT', lacks.join('\n'))
  const provenance = {
    seed,
    agent: describeAgent(agent).module,
    tasks: train.tasks.length,
    python: python.path,
    packages: python.report.packages,
  }
  const rewardSource = plan.reward?.source ?? null
  const tried = {
    ...request,
    name: plan.name,
    configurationHash: trainerConfigurationHash(plan),
    inputs: trainerInputHashes(plan),
    provenance,
  }
  const frozenModels = Object.keys(plan.config.settings.models)
  return await inTriedRun({ ...plan, rewardSource, frozenModels }, tried, (run, parts) => trainInDirectory(plan, parts, run, signal))
}

async function trainInDirectory(plan: PythonTrainingPlan, parts: RolloutParts, run: RunDirectory, signal: AbortSignal): Promise<RunReport> {
  const { store, emit } = run
  const { trainer } = plan
  // The framework works in the run's folder, so the path must be absolute.
  const path = resolve(run.path)
  await using stack = new AsyncDisposableStack()
  const accounts = openRunAccounts(store)
  stack.defer(() => accounts.close())
  await removeUnfinished(path)
  const history = createTrainerHistory(trainer, store, path)
  const earlier = history.incarnations().map(({ incarnation }) => incarnation)
  await sweepTrainer({ python: plan.python.path, bridgeDirectory, incarnations: earlier })
  const warmUpMs = { value: 0 }
  const engine = { simd: 'auto' as const, threads: null }
  const model =
    plan.model ?? (await makeModel({ ...plan, configDirectory: plan.config.directory, engine }, path, store, { emit, signal, warmUpMs }))
  // The prompts of a model that already existed were measured with the configuration.
  const tasks = [...plan.train.tasks, ...(plan.test?.tasks ?? [])]
  const longPrompts = plan.model === null ? await checkModelPrompts(plan.config, trainer, model, tasks) : []
  const incarnation = randomUUID()
  const name = basename(path)
  announce(emit, `check ${trainer.name}: its imports, and what it starts with`)
  const planned = await planStart(plan, { path, name, model, incarnation, resume: run.resumed }, signal)
  await trainer.writeFiles(planned, plan)
  const resumedFromStep = trainer.checkpoints.resumable(planned.checkpoints)
  const warn = (error: unknown) => emit({ type: 'warning-raised', at: Date.now(), code: 'STORE_FAILED', message: errorMessage(error) })
  // Steps after the checkpoint are trained again; what shows the run begins with those before.
  if (run.resumed) {
    await history.commit(resumedFromStep).catch(warn)
    await store.discardStepsAfter(resumedFromStep)
  }
  const session = await openRunSession(stack, {
    run: { ...run, path },
    accounts,
    name: plan.name,
    seed: plan.seed,
    settings: plan.config.settings,
    remedy: longerAnswers(plan, planned),
    checkpoints: () =>
      trainer.checkpoints.steps(planned.checkpoints).map((step) => ({ step, path: join(path, trainer.checkpoints.pathOf(step)) })),
    resumedFromStep,
  })
  const { onEvent } = session
  const watch = createRunWatch()
  const failures = createFailureTally()
  const idle = createIdleClock()
  const steps = planned.steps ?? 0
  const progress = createTrainerProgress({
    trainer,
    steps,
    resumedFromStep,
    evaluation: evaluationSize(plan, planned),
    onEvent,
    evaluated: failures.takeEvaluation,
    measured: () => ({ idleMs: idle.take() }),
    onStep: ({ saved }) => {
      void keepPhases(trainer.name, store, incarnation, progress.phasesMs()).catch(warn)
      if (saved) void history.commit(trainer.checkpoints.resumable(planned.checkpoints)).catch(warn)
    },
  })
  const stage = stack.adopt(
    await openTrainerStage({
      plan,
      model,
      isFolder: existsSync(join(model, 'config.json')),
      parts,
      store: accounts.counted(store),
      registry: session.registry,
      path,
      toTask: createRowTasks(plan),
      onEvent(event) {
        watch.alive()
        failures.read(event)
        if (event.type === 'rollout-start') idle.rollouts(1)
        if (event.type === 'rollout-end') idle.rollouts(-1)
        onEvent(event)
        if (event.type === 'rollout-start') progress.queued(event.split === 'train' ? 'train' : 'val')
      },
      onCalls: idle.calls,
      onFailed: watch.fail,
    }),
    (each) => each.close(),
  )
  const state: TrainerRunState = { checkpoints: planned.checkpoints, model, python: plan.python.path }
  await store.setState(trainerStateKey(trainer.name), state)
  await history.begin({ incarnation, resumedFromStep })
  session.begin(stack, {
    stage,
    engines: { [stage.engine.name]: stage.engine },
    channel: stage.channel,
    resumedFromStep: run.resumed ? resumedFromStep : null,
    details: describeStart(plan, planned, { model, gateway: stage.gateway.url }),
    findings: {
      notes: [...plan.config.notes, ...plan.findings.notes, ...planned.notes],
      warnings: [...plan.findings.warnings, ...longPrompts, ...planned.warnings],
    },
  })

  const exit = await followTrainer({ plan, planned, address: stage.address, path, name, incarnation, progress, watch, signal })
  const finished = exit.error === null && !exit.stopped
  // A step that cannot be kept is reported and shows in the ledger, because its training cannot be undone.
  if (finished) await history.commit(Number.POSITIVE_INFINITY).catch(warn)
  const status = finished ? 'finished' : exit.stopped ? 'stopped' : 'failed'
  const report = await leaveTrainerReport({
    plan,
    planned,
    store,
    path,
    model,
    status,
    history,
    progress,
    session,
    warmUpMs: warmUpMs.value,
    warn: (code, message) => emit({ type: 'warning-raised', at: Date.now(), code, message }),
  })
  if (exit.error) throw failures.explain(exit.error)
  if (finished) await store.complete()
  emit({ type: 'run-end', at: Date.now(), status })
  return report
}

/** What the first event of a run says about it. */
function describeStart(
  plan: PythonTrainingPlan,
  planned: TrainerPlan,
  { model, gateway }: { readonly model: string; readonly gateway: string },
) {
  return {
    policy: displayPath(model),
    trainer: `${frameworkOf(plan)}, ${plan.python.path}`,
    gateway,
    agent: describeAgents(plan.program.agents, plan.config.settings.rows),
    tasks: `${plan.train.tasks.length} to train, ${plan.test?.tasks.length ?? 0} held out`,
    steps: planned.steps ?? `as many as ${plan.trainer.name} finds`,
    seed: plan.seed,
  }
}

function longerAnswers({ trainer, config }: PythonTrainingPlan, { limits }: TrainerPlan): string {
  const { maxCompletionTokens } = config.settings
  const completion = maxCompletionTokens === null ? '' : `, or sampling.maxTokens, which is ${maxCompletionTokens}`
  return `Raise ${trainer.keys.responseLength}, which is ${limits.maxResponseTokens}${completion}.`
}

function evaluationSize({ test }: PythonTrainingPlan, { evaluation }: TrainerPlan): { tasks: number; rollouts: number } {
  const tasks = test?.tasks.length ?? 0
  return { tasks, rollouts: tasks * evaluation.samples }
}
