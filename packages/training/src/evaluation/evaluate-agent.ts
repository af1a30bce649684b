import { join } from 'node:path'
import { displayPath, type EvaluationWithResults, stableHash } from '@aworld-train/core'
import { openAgentSide } from '../agent-side/agent-side.ts'
import type { RolloutParts } from '../agent-side/rollout-parts.ts'
import { openTrainingSide } from '../agent-side/training-side.ts'
import { writeParquet } from '../dataset/write-parquet.ts'
import { openRunAccounts } from '../directory/run-accounts.ts'
import type { RunDirectory } from '../directory/run-directory.ts'
import { inTriedRun, type RunRequest } from '../directory/tried-run.ts'
import { hashesByName } from '../inputs/input-hashes.ts'
import { longPromptWarnings } from '../inputs/long-prompts.ts'
import { raiseFindings } from '../inputs/raise-findings.ts'
import { requireOutcome } from '../loop/evaluate.ts'
import { toLimits } from '../loop/group-requests.ts'
import type { ComparedEvaluation } from './compare.ts'
import { type EvaluationPlan, evaluationInputs, type OpenEvaluatedModel } from './evaluation-plan.ts'
import { evaluationName, leaveReport, rankKey, requestsOf } from './leave-report.ts'
import { runWithinBudget } from './run-within-budget.ts'
import { hasFailed } from './summarize.ts'

export interface EvaluationRequest extends RunRequest {
  /** The evaluation that this one is compared with. */
  readonly against?: ComparedEvaluation | undefined
  /** Whether the rollouts of the resumed run that failed run again. Default `false`. */
  readonly againFailed?: boolean | undefined
}

/**
 * Runs an agent over a dataset with a model as it is, in a run directory of its own, and goes on with the newest unfinished one of the same
 * plan. A run that cannot start leaves nothing. One whose agent failed in every rollout leaves its report and
 * rejects with EVALUATION_FAILED; one for which nothing around it worked rejects with that error, and goes on later.
 */
export async function evaluateAgent(plan: EvaluationPlan, request: EvaluationRequest): Promise<EvaluationWithResults> {
  const tried = { ...request, ...identityOf(plan) }
  const frozenModels = Object.keys(plan.settings.models)
  const parts = { ...plan, rewardSource: plan.reward?.source ?? null, train: plan.dataset, frozenModels }
  const report = await inTriedRun(parts, tried, (run, opened) => evaluateInRun(plan, { ...request, parts: opened }, run))
  if (report.status === 'finished' && report.failed === 0) await plan.model.keepRecording?.()
  return report
}

/** What identifies the run of a plan, and of what is done with it beside running it. */
export const identityOf = (plan: EvaluationPlan, others: Readonly<Record<string, unknown>> = {}) => {
  const inputs = { ...evaluationInputs(plan), ...hashesByName(others) }
  return {
    kind: 'evaluation' as const,
    name: plan.name,
    configurationHash: stableHash(inputs),
    inputs,
    provenance: {
      seed: plan.seed,
      agent: plan.agent.module,
      tasks: plan.dataset.tasks.length,
      evaluation: {
        samplesPerTask: plan.samplesPerTask,
        kindKey: plan.settings.evaluation.kindKey,
        hasPrice: plan.model.hasPrice,
      },
      command: plan.command,
    },
  }
}

interface PartsRequest extends EvaluationRequest {
  readonly parts: RolloutParts
}

async function evaluateInRun(plan: EvaluationPlan, request: PartsRequest, run: RunDirectory): Promise<EvaluationWithResults> {
  const { parts, signal, against, againFailed } = request
  const { path, store, emit } = run
  const { agent, dataset, settings } = plan
  await using stack = new AsyncDisposableStack()
  const accounts = stack.adopt(openRunAccounts(store), (each) => each.close())
  await writeParquet(dataset.tasks, dataset.answers, join(path, 'test_data.parquet'))
  const model = await plan.model.open(stack, { path, signal })
  const { runner, gateway, environment } = await openTrainingSide(
    stack,
    {
      ...parts,
      policies: model.routes,
      settings,
      configDirectory: plan.configDirectory,
      agentDirectory: agent.directory,
      elsewhere: plan.launchers && { agent, ...plan.launchers },
      seed: plan.seed,
      program: plan.program,
      store: accounts.counted(store),
      answers: { source: 'the dataset', byTask: dataset.answers },
      limits: toLimits(settings.limits),
      onEvent(event) {
        emit(event)
        accounts.touch()
      },
    },
    (side) => ({ runner: openAgentSide(stack, { ...side, requiresModelCall: false }) }),
  )
  accounts.attach({ gateway, environment, runner, engineCalls: model.engineCalls })
  announce(plan, run, model)
  const requests = requestsOf(plan, model.name)
  if (againFailed) await store.reopen(requests.flatMap(({ key }) => (failedBefore(key) ? [key] : [])))
  const done = requests.filter(({ key }) => store.rollout(key)?.status === 'done').length
  emit({ type: 'evaluation-start', at: Date.now(), name: evaluationName, rollouts: requests.length, ...(done > 0 && { done }) })
  const isRank = parts.reward?.kind === 'rank'
  await store.setState(rankKey, isRank)
  const { concurrency, limits } = settings
  // What may run again after a stop at the budget is what failed, and nothing that was left out.
  const wanted = againFailed && plan.budget === null ? requests.filter(({ key }) => isBegun(key)) : requests
  const maxCost = limits.maxCost === null ? null : limits.maxCost + (settings.reward.maxCost ?? 0)
  const ran = await runWithinBudget(wanted, { runner, budget: plan.budget, concurrency, maxCost, signal })
  const byKey = new Map(wanted.map(({ key }, index) => [key, ran[index] ?? null]))
  const episodes = requests.map(({ key }) => byKey.get(key) ?? null)
  requireOutcome(
    evaluationName,
    episodes.filter((episode) => episode !== null),
  )
  return await leaveReport(run, plan, {
    requests,
    episodes,
    weights: model.weights,
    isRank,
    accounts,
    against,
  })

  function isBegun(key: string): boolean {
    return store.rollout(key) !== null
  }

  function failedBefore(key: string): boolean {
    const episode = store.episode(key)
    return episode !== null && hasFailed(episode)
  }
}

/** Says that everything is open and what is evaluated. */
function announce(plan: EvaluationPlan, { path, resumed, started, emit }: RunDirectory, model: OpenEvaluatedModel): void {
  const { dataset, program, samplesPerTask } = plan
  const warnings = [...plan.warnings, ...(model.promptModel ? longPromptWarnings([dataset], model.promptModel) : [])]
  started()
  emit({
    type: 'run-start',
    version: 1,
    at: Date.now(),
    run: plan.name,
    path: displayPath(path),
    seed: plan.seed,
    resumedFromStep: null,
    details: {
      agent: program.agents.map(({ name }) => name).join(', '),
      ...model.details,
      tasks: `${dataset.tasks.length} x ${samplesPerTask}${plan.budget === null ? '' : `, at most $${plan.budget}`}${resumed ? ', going on' : ''}`,
    },
    ...(model.policyOfAgent && { policyOfAgent: model.policyOfAgent }),
  })
  raiseFindings(emit, { notes: plan.notes, warnings })
}
