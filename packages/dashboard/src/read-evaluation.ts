import {
  type CellOutcome,
  displayPath,
  EvaluationReport,
  type EvaluationTask,
  type EvaluationView,
  evaluationFactsOf,
  type RolloutRow,
  type TaskSummary,
  TrainError,
  type TrainingTask,
  toTrainError,
} from '@aworld-train/core'
import type { RunReader } from '@aworld-train/store'
import {
  type ComparedEvaluation,
  type EvaluatedEpisode,
  type EvaluationRollout,
  hasFailed,
  kindOf,
  type RunData,
  rankKey,
  summarizeRollouts,
  toRow,
} from '@aworld-train/training'
import { readJson, runStatus } from './run-status.ts'

/** Reads an evaluation from the records of its rollouts, as far as it is. */
export interface EvaluationReader {
  /** `null` for a run that is none. */
  view(): EvaluationView | null
  /** What `compareEvaluations` takes, whether it has ended or not. Throws CONFIG_INVALID for a run that is no evaluation. */
  compared(): ComparedEvaluation
}

export interface EvaluationParts {
  readonly run: RunReader
  readonly data: RunData
  /** The question and the answer of a task. */
  readonly summaryOf: (task: TrainingTask) => TaskSummary
}

/** An ended rollout. A reopened one ends at another place. */
interface Ended {
  readonly finished: number | null
  readonly episode: EvaluatedEpisode
}

/** A task with its rollouts by the number of their sample. */
interface TaskRollouts {
  readonly task: TrainingTask
  readonly kind: string
  readonly rows: ReadonlyMap<number, RolloutRow>
}

/** An ended rollout is read once. */
export function createEvaluationReader({ run, data, summaryOf }: EvaluationParts): EvaluationReader {
  const ended = new Map<string, Ended>()
  /** Tasks that began, by id, as their rollouts have them: with the hash of the files' bytes, which the data of a run does not have. */
  const begun = new Map<string, TrainingTask>()
  const facts = evaluationFactsOf(run.manifest) ?? { samplesPerTask: 1, kindKey: null, hasPrice: false }

  function episodeOf(row: RolloutRow): EvaluatedEpisode | null {
    if (row.status !== 'done') return null
    const cached = ended.get(row.key)
    // A reward of groups gives an ended rollout its value later.
    const { finished, episode: earlier } = cached ?? {}
    if (earlier && finished === row.finished && earlier.reward === row.reward && earlier.stopReason === row.stopReason) return earlier
    const episode = readEpisode(row)
    if (!episode) return null
    const counted = countedParts(episode)
    ended.set(row.key, { finished: row.finished, episode: counted })
    return counted
  }

  /** A damaged one has what its row says, and counts as one whose calls were not seen. */
  function readEpisode(row: RolloutRow): EvaluatedEpisode | null {
    try {
      return run.episode(row.key)
    } catch (error) {
      if (toTrainError(error, 'STORE_FAILED').code !== 'STORE_CORRUPT') throw error
      const { key, attempt, answer, reward, stopReason, error: failure, queuedAt, startedAt, endedAt } = row
      return {
        ...{ rollout: key, attempt, answer, reward, scores: {}, stopReason: stopReason ?? 'failed', trajectories: [], toolCalls: [] },
        ...(failure && { error: failure }),
        timing: { startedAt: startedAt ?? queuedAt, endedAt: endedAt ?? startedAt ?? queuedAt },
      }
    }
  }

  /** Tasks in the order of the dataset. A run without its data has those that began. */
  function tasks(): TaskRollouts[] {
    const rows = Map.groupBy(allRows(run), ({ taskId }) => taskId)
    const inDataset = [...data.tasks.values()]
    for (const [id, [first]] of rows) {
      const task = begun.get(id) ?? run.rollout(first!.key)?.request.task
      if (task) begun.set(id, task)
    }
    const others = [...begun.values()].filter(({ id }) => !data.tasks.has(id))
    return [...inDataset, ...others].map((task) => {
      const own = rows.get(task.id) ?? []
      return {
        task: begun.get(task.id) ?? task,
        kind: own[0]?.kind ?? kindOf(task, facts.kindKey),
        rows: new Map(own.map((row) => [row.sample, row])),
      }
    })
  }

  const rolloutsOf = ({ task, kind, rows }: TaskRollouts, position: number): EvaluationRollout[] =>
    Array.from({ length: Math.max(facts.samplesPerTask, 1 + Math.max(0, ...rows.keys())) }, (_, sample) => {
      const row = rows.get(sample)
      return { task, kind, sample, rollout: row?.key ?? `evaluation/eval/${position}/${sample}`, episode: row ? episodeOf(row) : null }
    })

  const summarize = (rollouts: readonly EvaluationRollout[]) =>
    summarizeRollouts(rollouts, { answers: data.answers, hasPrice: facts.hasPrice, isRank: run.getState(rankKey) === true })

  const report = () => (runStatus(run.path).status === 'running' ? null : readJson(run.path, 'report.json', EvaluationReport))

  function toTask({ task, kind, rows }: TaskRollouts, rollouts: readonly EvaluationRollout[]): EvaluationTask {
    const rewards = rollouts.flatMap(({ episode }) => episode?.reward ?? [])
    return {
      ...summaryOf(task),
      id: task.id,
      hash: task.hash,
      kind,
      mean: rewards.length === 0 ? null : rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length,
      cells: rollouts.map(({ rollout, sample, episode }) => ({
        rollout,
        sample,
        outcome: episode ? outcomeOf(episode) : rows.get(sample)?.status === 'running' ? 'running' : 'waiting',
        reward: episode?.reward ?? null,
        reason: episode ? (episode.error?.code ?? episode.stopReason) : null,
        tools: [...new Set(episode?.toolCalls.map(({ name }) => name))],
      })),
    }
  }

  return {
    view() {
      if (run.manifest.kind !== 'evaluation') return null
      const all = tasks()
      const rollouts = all.map(rolloutsOf)
      const { comparison = null, times = null } = report() ?? {}
      return {
        numbers: summarize(rollouts.flat()),
        tasks: all.map((task, index) => toTask(task, rollouts[index]!)),
        comparison,
        wallMs: times?.wallMs ?? null,
      }
    },
    compared() {
      const { kind, name, createdAt, provenance } = run.manifest
      if (kind !== 'evaluation') throw new TrainError('CONFIG_INVALID', `${name} is no evaluation; choose two evaluations to compare.`)
      const inputs = (provenance['inputs'] ?? {}) as Readonly<Record<string, string>>
      const rollouts = tasks().flatMap(rolloutsOf)
      const { reward, scored } = summarize(rollouts)
      const unnamed = { path: displayPath(run.path), model: null, startedAt: createdAt, reward, scored }
      return { report: report() ?? unnamed, rows: rollouts.map((each) => toRow(each, facts)), inputs }
    },
  }
}

function allRows(run: RunReader): RolloutRow[] {
  const rows: RolloutRow[] = []
  for (let after: string | undefined; ; ) {
    const page = run.rolloutRows({ limit: 2_000, ...(after !== undefined && { after }) })
    rows.push(...page.rows)
    if (page.next === null) return rows
    after = page.next
  }
}

/** Without tokens and messages, which are most of an episode. */
function countedParts({
  rollout,
  attempt,
  answer,
  reward,
  scores,
  stopReason,
  error,
  timing,
  trajectories,
  rewardTrajectories,
  toolCalls,
}: EvaluatedEpisode): EvaluatedEpisode {
  return {
    ...{ rollout, attempt, answer, reward, scores, stopReason, timing },
    ...(error && { error }),
    ...(rewardTrajectories && {
      rewardTrajectories: rewardTrajectories.map(({ turns }) => ({ turns: turns.map(({ cost }) => ({ cost })) })),
    }),
    toolCalls: toolCalls.map(({ name }) => ({ name })),
    trajectories: trajectories.map(({ turns }) => ({
      turns: turns.map(({ attempt, cost, usage, responseModel }) => ({
        ...{ attempt, usage },
        ...(cost !== undefined && { cost }),
        ...(responseModel !== undefined && { responseModel }),
      })),
    })),
  }
}

function outcomeOf(episode: EvaluatedEpisode): CellOutcome {
  if (hasFailed(episode)) return 'failed'
  if (episode.reward === null) return 'unscored'
  return episode.reward >= 1 ? 'right' : episode.reward <= 0 ? 'wrong' : 'partly'
}
