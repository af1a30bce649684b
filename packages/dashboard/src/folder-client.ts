import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import {
  AnyReport,
  desktopUrlOf,
  displayPath,
  type InvocationStart,
  isRecord,
  type LedgerSummary,
  type RolloutList,
  type RolloutRow,
  type RunClient,
  type RunReport,
  type RunSummary,
  type TaskSummary,
  type TrainingTask,
  type Turn,
} from '@aworld-train/core'
import { healthEveryMs, healthKeptMs, readRun } from '@aworld-train/store'
import { readRunData } from '@aworld-train/training'
import { parse } from 'yaml'
import { type FollowedLog, followedLog } from './follow-events.ts'
import { createEvaluationReader, type EvaluationReader } from './read-evaluation.ts'
import { firstEvent, readJson, runStatus } from './run-status.ts'
import { createTally } from './tally.ts'
import { remedyOf, type TraceParts, toTrace } from './to-trace.ts'
import { readTokenTexts } from './token-texts.ts'

/** A run in a folder, live or saved. The caller closes it. */
export interface FolderClient extends RunClient {
  /** The events of `follow`, grouped as they were read. */
  readonly followPages: FollowedLog['follow']
  /** The evaluation, to compare it with another one. */
  readonly compared: EvaluationReader['compared']
  close(): void
}

/** Most rollouts that are named as examples. */
const mostExamples = 20

function readSettings(path: string): Record<string, unknown> {
  try {
    const settings: unknown = parse(readFileSync(join(path, 'final_trainer.yaml'), 'utf8'))
    return isRecord(settings) ? settings : {}
  } catch {
    return {}
  }
}

function questionOf({ input }: TrainingTask): string {
  return typeof input === 'string' ? input : (input.findLast(({ role }) => role === 'user')?.content ?? input.at(-1)?.content ?? '')
}

/** The call that asked for an invocation, as its id names it. The agent's side says more, but only at the end. */
function askedBy(id: string, agent: string, trajectories: ReadonlyMap<string, readonly Turn[]>): InvocationStart[] {
  const [, trajectory = '', turn, call] = /^(.+)\.(\d+)\.(\d+)$/s.exec(id.slice(agent.length + 1)) ?? []
  const caller = trajectories.get(trajectory)?.find(({ index }) => index === Number(turn))
  const toolCall = caller?.toolCalls[Number(call)]?.id
  return toolCall === undefined ? [] : [{ trajectory, turn: Number(turn), toolCall }]
}

/** Opens the run at `path` to read. Rejects with STORE_CORRUPT or STORE_VERSION. */
export async function openFolder(path: string): Promise<FolderClient> {
  const run = readRun(path)
  const settings = readSettings(path)
  const data = await readRunData(path)
  const { tasks, answers } = data
  const summaries = new Map<string, TaskSummary>()
  const log = followedLog(path)
  const texts = readTokenTexts(path)

  let tally = createTally()
  let counted = 0
  let takenBack = 0
  /** Rollouts with unparsed calls. In an ended run they are looked for once, because every turn is read for them. */
  let unparsedRollouts: readonly string[] | null = null
  const countedSteps = new Set<number>()

  function count(records: ReturnType<typeof run.stepMetrics>): void {
    if (run.timesTakenBack() !== takenBack) {
      takenBack = run.timesTakenBack()
      tally = createTally()
      counted = 0
      countedSteps.clear()
    }
    const committed = records.map(({ step }) => step).filter((step) => !countedSteps.has(step))
    // A step may leave groups to the next step, which then has rollouts that finished earlier.
    const totals = run.finishedTotals(
      counted,
      committed.flatMap((step) => [step, step + 1]),
    )
    tally.add(totals)
    counted = totals.last
    for (const step of committed) {
      countedSteps.add(step)
      for (const sample of run.sampleTokens(step)) tally.addTokens(step, sample)
    }
  }

  function taskOf(row: RolloutRow): TaskSummary {
    const cached = summaries.get(row.taskId)
    if (cached) return cached
    const task = tasks.get(row.taskId) ?? run.rollout(row.key)?.request.task
    const summary = task ? summaryOf(task) : { question: row.taskId, answer: answerOf(row.taskId) }
    summaries.set(row.taskId, summary)
    return summary
  }

  const summaryOf = (task: TrainingTask): TaskSummary => ({ question: questionOf(task), answer: answerOf(task.id) })

  function answerOf(taskId: string): string | null {
    const truth = answers.get(taskId)?.groundTruth
    return truth === undefined || truth === null ? null : typeof truth === 'string' ? truth : JSON.stringify(truth)
  }

  const evaluation = createEvaluationReader({ run, data, summaryOf })

  function recorded(key: string): TraceParts['trajectories'] {
    const requested = run.rollout(key)?.request.policy ?? ''
    const policyOfAgent = firstEvent(path)?.policyOfAgent ?? {}
    const trajectories = run.turnsOf(key)?.trajectories ?? new Map<string, readonly Turn[]>()
    return [...trajectories].map(([id, turns]) => {
      const trainable = turns.some((turn) => turn.model === undefined && turn.completionTokenIds.length > 0)
      const { agent } = turns[0]!
      const timing = {
        startedAt: Math.min(...turns.map((turn) => turn.timing.startedAt)),
        endedAt: Math.max(...turns.map((turn) => turn.timing.endedAt)),
      }
      return {
        id,
        agent,
        policy: policyOfAgent[agent] ?? requested,
        trainable,
        startedBy: askedBy(id, agent, trajectories),
        timing,
        turns: [...turns],
      }
    })
  }

  /** A trainer that keeps no rows of its steps reports the fate of their tokens itself. */
  const ledger = (report: RunReport | null): LedgerSummary =>
    report?.ledger && !tally.hasSamples ? report.ledger : tally.ledger(run.supersededTokens())

  const eventsEnd = () => {
    try {
      return statSync(join(path, 'events.jsonl')).size
    } catch {
      return 0
    }
  }

  return {
    async summary(): Promise<RunSummary> {
      const end = eventsEnd()
      const records = run.stepMetrics()
      count(records)
      const { status, error } = runStatus(path)
      // A resumed run still has the report of the process before.
      const left = status === 'running' ? null : readJson(path, 'report.json', AnyReport)
      const report = left?.kind === 'training' ? left : null
      const unparsed = left?.tokenReport?.unparsed ?? {}
      unparsedRollouts = !left || Object.keys(unparsed).length === 0 ? null : (unparsedRollouts ?? run.unparsed(mostExamples))
      // The run keeps warnings as they come.
      const warnings = (run.getState('warnings') as RunReport['warnings'] | undefined) ?? report?.warnings ?? []
      const statuses = run.statuses()
      const cutOff = (['cancelled', 'interrupted'] as const).flatMap((cut) =>
        statuses[cut] > 0 ? run.rolloutRows({ status: cut, limit: mostExamples }).rows : [],
      )
      const start = firstEvent(path)
      return {
        kind: run.manifest.kind,
        name: run.manifest.name,
        path: displayPath(path),
        createdAt: run.manifest.createdAt,
        status,
        failure: error && { code: error.code, message: error.message, remedy: remedyOf(error) },
        seed: start?.seed ?? null,
        versions: run.manifest.versions,
        details: start?.details ?? {},
        desktopUrl: desktopUrlOf(run.manifest),
        settings,
        rollouts: statuses,
        stopReasons: tally.stopReasons,
        errors: tally.errors,
        turns: tally.turns,
        toolCalls: tally.toolCalls,
        cost: tally.cost,
        steps: tally.steps(records),
        evaluations: tally.evaluations(),
        ledger: ledger(report),
        policyOfAgent: start?.policyOfAgent ?? {},
        agents: report && Object.keys(report.agents).length > 0 ? report.agents : tally.agents,
        unparsed: { byKind: unparsed, rollouts: unparsedRollouts ?? [] },
        repeated: { count: tally.repeated.count, first: [...tally.repeated.first] },
        incomplete: [...tally.incomplete, ...cutOff],
        times: report?.times ?? null,
        checkpoints: records.flatMap(({ checkpoint }) => checkpoint ?? []),
        warnings: warnings.map(({ code, count, messages }) => ({ code, count, message: messages[0]! })),
        health: { everyMs: healthEveryMs, keptMs: healthKeptMs },
        eventsEnd: end,
      }
    },
    async rollouts(query): Promise<RolloutList> {
      const { rows: list, next } = run.rolloutRows(query)
      return {
        rows: list,
        next,
        samples: run.samplesOf(list.map(({ key }) => key)),
        tasks: Object.fromEntries(list.map((row) => [row.taskId, taskOf(row)])),
      }
    },
    async rollout(key) {
      const row = run.rolloutRow(key)
      if (!row) return null
      const episode = run.episode(key)
      // A rollout that runs, or whose result is lost, has the turns recorded so far.
      const trajectories = episode?.trajectories ?? recorded(key)
      const samples = run.samples({ rollout: key })
      return toTrace({ row, attempts: run.attempts(key), task: taskOf(row), episode, trajectories, samples, texts })
    },
    evaluation: async () => evaluation.view(),
    health: async (after) => run.health(after),
    async *follow(after, signal) {
      for await (const events of log.follow(after, signal)) yield* events
    },
    followPages: log.follow,
    compared: evaluation.compared,
    close: () => run.close(),
  }
}
