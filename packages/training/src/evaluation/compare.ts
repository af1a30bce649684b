import {
  type EvaluationComparison,
  type EvaluationReport,
  type EvaluationRow,
  pairedDifference,
  TrainError,
  type TrainingTask,
} from '@aworld-train/core'

/** What a comparison needs of an evaluation, which may still run. */
export interface ComparedEvaluation {
  readonly report: Pick<EvaluationReport, 'path' | 'model' | 'startedAt' | 'reward' | 'scored'>
  readonly rows: readonly EvaluationRow[]
  /** Hashes of its inputs by name, as the manifest keeps them. */
  readonly inputs: Readonly<Record<string, string>>
}

/** An evaluation with its report. */
export interface FinishedEvaluation extends ComparedEvaluation {
  readonly report: EvaluationReport
}

/** Throws CONFIG_INVALID if fewer than two tasks have a scored rollout in `other`, so that nothing could be compared with it. */
export function requirePairs(tasks: readonly Pick<TrainingTask, 'hash'>[], other: ComparedEvaluation): void {
  const scored = meansByTask(other.rows)
  const common = tasks.filter(({ hash }) => scored.has(hash)).length
  if (common < 2) throw tooFewPairs(`these ${tasks.length} tasks`, other.report.path, common)
}

const tooFewPairs = (ours: string, theirs: string, common: number) =>
  new TrainError(
    'CONFIG_INVALID',
    `${ours} and ${theirs} have ${common === 0 ? 'no scored task' : 'one scored task'} in common, and a comparison needs two; compare evaluations of the same tasks.`,
  )

/** Inputs that may differ between evaluations without a word. */
const mayDiffer: ReadonlySet<string> = new Set(['the model', 'the name', 'the tasks', 'the episodes'])

/**
 * Compares an evaluation with another one, task by task: tasks are equal by their hash, and each has the mean of its rollouts that were
 * scored. Throws CONFIG_INVALID if fewer than two tasks pair. The interval is core's `pairedDifference`.
 */
export function compareEvaluations(ours: ComparedEvaluation, theirs: ComparedEvaluation): EvaluationComparison {
  for (const { report } of [ours, theirs])
    if (report.reward === null && report.scored.rollouts > 0)
      throw new TrainError(
        'CONFIG_INVALID',
        `${report.path} has ranks, an order within each task, which cannot be compared with another evaluation.`,
      )
  const [after, before] = [meansByTask(ours.rows), meansByTask(theirs.rows)]
  const pairs = [...after].flatMap(([hash, task]) => {
    const other = before.get(hash)
    return other ? [{ taskId: task.taskId, to: task.mean, from: other.mean }] : []
  })
  if (pairs.length < 2) throw tooFewPairs(ours.report.path, theirs.report.path, pairs.length)
  const { mean, interval } = pairedDifference(
    pairs.map(({ to }) => to),
    pairs.map(({ from }) => from),
  )
  const worse = pairs.filter(({ from, to }) => to < from).sort((a, b) => a.to - a.from - (b.to - b.from))
  const better = pairs.filter(({ from, to }) => to > from).length
  return {
    path: theirs.report.path,
    model: theirs.report.model,
    startedAt: theirs.report.startedAt,
    difference: { value: mean, interval, tasks: pairs.length },
    better,
    worse: worse.length,
    equal: pairs.length - better - worse.length,
    worst: worse[0] ?? null,
    notes: differencesOf(ours, theirs, pairs.length, after.size, before.size),
  }
}

function differencesOf(ours: ComparedEvaluation, theirs: ComparedEvaluation, paired: number, after: number, before: number): string[] {
  const names = new Set([...Object.keys(ours.inputs), ...Object.keys(theirs.inputs)])
  const changed = [...names].filter((name) => !mayDiffer.has(name) && ours.inputs[name] !== theirs.inputs[name])
  return [
    ...(paired < Math.max(after, before)
      ? [`${paired} tasks are in both; ${after - paired} are scored in the newer evaluation alone, ${before - paired} in the older.`]
      : []),
    ...(changed.length > 0 ? [`Beside the model, ${changed.join(', ')} ${changed.length === 1 ? 'differs' : 'differ'}.`] : []),
  ]
}

interface MeanOfTask {
  readonly taskId: string
  readonly mean: number
}

function meansByTask(rows: readonly EvaluationRow[]): ReadonlyMap<string, MeanOfTask> {
  const groups = Map.groupBy(
    rows.filter(({ reward }) => reward !== null),
    ({ taskHash }) => taskHash,
  )
  return new Map(
    [...groups].map(([hash, group]) => [
      hash,
      { taskId: group[0]!.taskId, mean: group.reduce((sum, { reward }) => sum + reward!, 0) / group.length },
    ]),
  )
}
