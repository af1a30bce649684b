import { join } from 'node:path'
import { type Episode, type EvaluationReport, type EvaluationWithResults, type RolloutRequest, TrainError } from '@aworld-train/core'
import { writeJsonAtomically } from '@aworld-train/store'
import { kindOf } from '../dataset/task-column.ts'
import type { RunAccounts } from '../directory/run-accounts.ts'
import type { RunDirectory } from '../directory/run-directory.ts'
import { runVersions } from '../directory/run-files.ts'
import { evaluationRequests, requireResults } from '../loop/evaluate.ts'
import { type ComparedEvaluation, compareEvaluations } from './compare.ts'
import { type EvaluationPlan, evaluationInputs, type OpenEvaluatedModel } from './evaluation-plan.ts'
import { writeResults } from './results.ts'
import { type EvaluationRollout, summarizeRollouts, toRow } from './summarize.ts'

/** The name of the evaluation within its run, which is part of the key of each rollout. */
export const evaluationName = 'eval'

/** The state of a run that says whether its rewards only order the samples of a task. */
export const rankKey = 'evaluation-ranks'

/** The rollouts of a plan. */
export const requestsOf = ({ dataset, sampling, samplesPerTask, settings }: EvaluationPlan, policy: string): RolloutRequest[] =>
  evaluationRequests({
    name: evaluationName,
    split: 'test',
    step: 0,
    tasks: dataset.tasks,
    sampling,
    samplesPerPrompt: samplesPerTask,
    policy,
    limits: {},
    kindKey: settings.evaluation.kindKey,
  })

export interface EvaluationOutcome {
  readonly requests: readonly RolloutRequest[]
  /** In the order of the requests; `null` is one that was not started. */
  readonly episodes: readonly (Episode | null)[]
  readonly weights: OpenEvaluatedModel['weights']
  /** Whether rewards only order the samples of a task, so that they have no mean. */
  readonly isRank: boolean
  readonly accounts: Pick<RunAccounts, 'finish'>
  /** The evaluation to compare with. */
  readonly against: ComparedEvaluation | undefined
}

/**
 * Writes `report.json` and `results.jsonl` of an evaluation and ends its run, which stays unfinished if rollouts were not started. Throws
 * EVALUATION_FAILED if every rollout failed; the report is written by then.
 */
export async function leaveReport(
  { path, store, emit }: RunDirectory,
  plan: EvaluationPlan,
  { requests, episodes, weights, isRank, accounts, against }: EvaluationOutcome,
): Promise<EvaluationWithResults> {
  const { settings, dataset, seed, sampling, samplesPerTask } = plan
  const rollouts = requests.map(
    ({ task, key, sample }, index): EvaluationRollout => ({
      task,
      kind: kindOf(task, settings.evaluation.kindKey),
      rollout: key,
      sample,
      episode: episodes[index]!,
    }),
  )
  const options = { answers: dataset.answers, hasPrice: plan.model.hasPrice, isRank }
  const summary = summarizeRollouts(rollouts, options)
  const results = rollouts.map((each) => toRow(each, options))
  const { calls, tokenReport, wallMs } = await accounts.finish()
  const alone: Omit<EvaluationReport, 'comparison'> = {
    version: 2,
    kind: 'evaluation',
    ...weights,
    run: plan.name,
    path,
    agent: plan.program.agents[0]?.name ?? 'agent',
    startedAt: store.manifest.createdAt,
    status: summary.notStarted > 0 ? 'stopped' : 'finished',
    seed,
    sampling,
    samplesPerTask,
    ...summary,
    counts: calls,
    tokenReport,
    times: { wallMs },
    versions: runVersions(),
  }
  const comparison = against ? compared({ report: alone, rows: results, inputs: evaluationInputs(plan) }, against, emit) : null
  const report: EvaluationReport = { ...alone, comparison }
  await writeResults(path, results)
  await writeJsonAtomically(join(path, 'report.json'), report)
  emit({
    type: 'evaluation-end',
    at: Date.now(),
    name: evaluationName,
    step: 0,
    metrics: metricsOf(report),
    ...(report.failures.length > 0 && { failures: report.failures }),
  })
  requireResults({ name: evaluationName, ...report })
  if (report.status === 'finished') await store.complete()
  emit({ type: 'run-end', at: Date.now(), status: report.status })
  return { ...report, results }
}

/** The comparison, or `null` with a warning where too little was scored: what was paid for is reported all the same. */
function compared(ours: ComparedEvaluation, theirs: ComparedEvaluation, emit: RunDirectory['emit']): EvaluationReport['comparison'] {
  try {
    return compareEvaluations(ours, theirs)
  } catch (error) {
    if (!(error instanceof TrainError)) throw error
    emit({ type: 'warning-raised', at: Date.now(), code: 'NOT_COMPARED', message: error.message })
    return null
  }
}

function metricsOf({ reward, interval, tasks, rollouts, failed, unscored, scored, passAtK }: EvaluationReport): Record<string, number> {
  return {
    ...(reward !== null && interval !== null && { reward, low: interval[0], high: interval[1] }),
    tasks,
    rollouts,
    failed,
    ...(unscored > 0 && { unscored }),
    ...(failed > 0 && { countedTasks: scored.tasks, countedRollouts: scored.rollouts }),
    ...Object.fromEntries(Object.entries(passAtK).map(([k, { value }]) => [`pass@${k}`, value])),
  }
}

/** Throws EVALUATION_FAILED if a greater share of an evaluation's rollouts failed than may fail. */
export function requireFewFailures({ failed, rollouts, notStarted, failures }: EvaluationReport, maxFailed: number): void {
  const started = rollouts - notStarted
  if (failed <= maxFailed * started) return
  const percent = (share: number) => `${Number((100 * share).toFixed(1))} %`
  throw new TrainError(
    'EVALUATION_FAILED',
    `${failed} of ${started} rollouts failed (${percent(failed / started)}), and ${percent(maxFailed)} may; run them once more with eval --again failed, or raise --max-failed.`,
    { details: { failures } },
  )
}
