import { join } from 'node:path'
import type { RunEvent, RunReport } from '@aworld-train/core'
import { keepTokenizer, type OwnedRunStore } from '@aworld-train/store'
import {
  inTriedRun,
  listCheckpoints,
  longPromptWarnings,
  makeModel,
  openRunAccounts,
  openRunSession,
  type RolloutParts,
  type RunDirectory,
  type RunRequest,
  removeUnfinished,
  type SelfDrivenResult,
} from '@aworld-train/training'
import { inputHashes } from './configuration-hash.ts'
import type { LocalPlan } from './plan.ts'
import { describeRun, policyOfAgent } from './run-report.ts'
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
  const provenance = { seed: plan.seed, agent: plan.agent.module, tasks: plan.train.tasks.length }
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
  const models: string[] = []
  for (const { name, model, warmUp } of plan.policies) {
    const request = { warmUp, configDirectory: plan.configDirectory, seed: plan.seed, engine: plan.config.engine, policy: name }
    models.push(model ?? (await makeModel(request, path, store, { emit, signal, warmUpMs })))
  }
  const madeModelMs = performance.now() - modelAt
  for (const [index, { name }] of plan.policies.entries()) await keepTokenizer(path, models[index]!, name)
  const answers = new Map([...plan.train.answers, ...(plan.validation?.answers ?? []), ...(plan.test?.answers ?? [])])
  const { maxTokens } = plan.config.sampling
  const remedy = `Raise sampling.maxTokens, which is ${maxTokens}; where the context of the model is full instead, shorten the prompts.`
  const session = await openRunSession(stack, {
    run,
    accounts,
    name: plan.name,
    seed: plan.seed,
    settings: plan.config,
    remedy,
    checkpoints: () => listCheckpoints(path),
  })
  const { onEvent, registry } = session
  const stage = stack.adopt(
    await openStage({
      models,
      plan,
      parts,
      store: accounts.counted(store),
      answers,
      onEvent,
      signal,
      served: { port: plan.config.gateway.port, registry },
    }),
    (each) => each.close(),
  )
  const { engine } = stage.policy
  const longPrompts = longPromptWarnings([plan.train, plan.validation, plan.test], stage.promptModel)
  const startMs = performance.now() - startedAt - madeModelMs
  session.begin(stack, {
    stage,
    engines: stage.engines,
    channel: null,
    resumedFromStep: run.resumed ? (store.steps().at(-1)?.step ?? 0) : null,
    details: describeRun(plan, stage),
    policyOfAgent: stage.policy.members && policyOfAgent(plan),
    findings: { notes: plan.notes, warnings: [...plan.warnings, ...longPrompts] },
  })

  async function leaveReport(result: SelfDrivenResult): Promise<RunReport> {
    const { status, before, after, greedyBefore, greedyAfter, curve, ledger, rollouts, episodesByStopReason } = result
    const notStarted = total(curve.map(({ metrics }) => metrics['notStarted'] ?? 0))
    return await session.leaveReport({
      model: stage.policy.members ? null : models[0]!,
      checkpoint: result.lastCheckpoint,
      ...(stage.policy.members && {
        policies: Object.fromEntries(
          plan.policies.map(({ name, trainable }, index) => [
            name!,
            {
              model: models[index]!,
              trainable,
              checkpoint: trainable && result.lastCheckpoint !== null ? join(result.lastCheckpoint, name!) : null,
              ledger: result.policies[name!]!,
            },
          ]),
        ),
      }),
      status,
      engine: engine.name,
      tier: { ...stage.policy.tier },
      before,
      after,
      greedyBefore,
      greedyAfter,
      curve,
      ledger,
      agents: { ...store.agentTokens() },
      maxLogprobDifference: greatest(curve.flatMap(({ metrics }) => metrics['maxLogprobDifference'] ?? [])),
      checkpoints: [...result.checkpoints],
      counts: {
        rollouts,
        episodesByStopReason: { ...episodesByStopReason },
        ...(plan.config.training.firstSamples !== null && { notStarted }),
      },
      phasesMs: (wallMs) =>
        allPhases(wallMs, { ...(warmUpMs.value > 0 && { 'warm-up': warmUpMs.value }), start: startMs, ...result.phasesMs }),
    })
  }

  return {
    path,
    store,
    stage,
    onEvent,
    listen: session.listen,
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
