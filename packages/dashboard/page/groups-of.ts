import type { EvaluationSummary, RolloutList, RolloutRow, SampleSummary, TaskSummary } from '@aworld-train/core'
import { evaluationName } from '../src/evaluation-name.ts'
import { visible } from './format.ts'

/** Rollouts that are compared: samples of a task in a step, or all evaluations of a task. */
export interface Group {
  readonly id: string
  /** Short name: the last part of its id. */
  readonly label: string
  readonly kind: string
  /** With control and direction characters made visible. */
  readonly task: TaskSummary
  readonly rows: readonly RolloutRow[]
  /** The first sample of each row; `null` if it has none. */
  readonly samples: readonly (SampleSummary | null)[]
}

/** The place at which a rollout is listed: the number of its step, or the split of its evaluation. */
export const placeOf = (row: RolloutRow) => (row.split === 'train' && row.step !== null ? String(row.step) : row.split)
export const isEvaluation = (place: string) => !/^\d+$/.test(place)
/** Whether it is of a run that is an evaluation, whose rollouts of a task are samples. */
export const isOfEvaluation = (row: RolloutRow) => evaluationName(row) === 'eval'
/** The name of a sample in a group: its number, or its evaluation. */
export function sampleName(row: RolloutRow): string {
  const place = sampleNumber(row)
  return row.split === 'train' || isOfEvaluation(row) ? `sample ${place}` : `${evaluationName(row)}${place === '0' ? '' : `, ${place}`}`
}
/** The number of a sample in its group, which is the last part of the key. `sample` numbers the samples of a task over the whole run. */
export const sampleNumber = ({ key, sample }: RolloutRow) => /\/(\d+)$/.exec(key)?.[1] ?? String(sample)

const shown = ({ question, answer }: TaskSummary): TaskSummary => ({ question: visible(question), answer: answer && visible(answer) })

const inOrder = new Intl.Collator('en', { numeric: true }).compare

/** Groups of a step, or tasks of an evaluation. Evaluations of a task have the order of `evaluations`. */
export function groupsOf({ rows, tasks, samples }: RolloutList, evaluations: readonly EvaluationSummary[] = []): Group[] {
  const sampleOf = new Map<string, SampleSummary>()
  for (const sample of samples) if (!sampleOf.has(sample.rollout)) sampleOf.set(sample.rollout, sample)
  const order = new Map(evaluations.map(({ name }, index) => [name, index]))
  const rank = (row: RolloutRow) => order.get(evaluationName(row)) ?? order.size
  const members = new Map<string, RolloutRow[]>()
  for (const row of rows) {
    const id = row.split === 'train' ? row.group : row.taskId
    const list = members.get(id)
    if (list) list.push(row)
    else members.set(id, [row])
  }
  return [...members]
    .map(([id, list]) => ({ id, rows: list.sort((a, b) => (a.split === 'train' ? 0 : rank(a) - rank(b)) || a.sample - b.sample) }))
    .sort((a, b) => inOrder(a.rows[0]!.group, b.rows[0]!.group))
    .map(({ id, rows: list }) => ({
      id,
      label: list[0]!.group.split('/').at(-1)!,
      kind: list[0]!.kind,
      task: shown(tasks[list[0]!.taskId] ?? { question: list[0]!.taskId, answer: null }),
      rows: list,
      samples: list.map(({ key }) => sampleOf.get(key) ?? null),
    }))
}

export interface Verdict {
  readonly name: 'teaches' | 'nothing' | 'waiting' | 'learned' | 'unlearned' | 'same'
  readonly why: string
}

/**
 * The verdict on a group: what it taught and why, or how a held-out task has changed between the first and the last of `compared`.
 * `samplesPerPrompt` is the size of a group that does not end early, and `null` where none may.
 */
export function verdictOf(
  group: Group,
  compared: readonly [first: string, last: string] | null,
  samplesPerPrompt: number | null = null,
): Verdict {
  const rewards = group.rows.map(({ reward }) => reward ?? 0)
  if (group.rows[0]!.split !== 'train') return change(group, compared)
  const right = rewards.filter((reward) => reward >= 1).length
  if (group.samples.every((sample) => sample === null)) {
    const done = group.rows.filter(({ status }) => status === 'done').length
    return { name: 'waiting', why: done < group.rows.length ? `${done} of ${group.rows.length} done` : 'not trained yet' }
  }
  const reason = group.samples.find((sample) => sample?.reason)?.reason
  const isTrained = group.samples.some((sample) => sample && sample.reason === null)
  if (samplesPerPrompt !== null && rewards.length < samplesPerPrompt)
    return { name: isTrained ? 'teaches' : 'nothing', why: `${rewards.length} of ${samplesPerPrompt}, solved` }
  if (isTrained) return { name: 'teaches', why: `${right} of ${rewards.length} right` }
  if (reason === 'group-of-one') return { name: 'nothing', why: 'one sample, nothing to compare with' }
  if (reason === 'zero-variance-group')
    return {
      name: 'nothing',
      why: `nothing: ${right === rewards.length ? 'all right' : rewards[0]! <= 0 ? 'all wrong' : `all ${rewards[0]}`}`,
    }
  return { name: 'nothing', why: `nothing: ${(reason ?? 'no sample').replaceAll('-', ' ')}` }
}

function change(group: Group, compared: readonly [string, string] | null): Verdict {
  const of = (name: string | undefined) => {
    const rewards = group.rows.filter((row) => evaluationName(row) === name).map(({ reward }) => reward ?? 0)
    return rewards.length > 0 ? spreadMean(rewards) : null
  }
  const [first, last] = [of(compared?.[0]), of(compared?.[1])]
  if (first === null || last === null || compared?.[0] === compared?.[1]) return { name: 'same', why: 'evaluated once' }
  if (last > first) return { name: 'learned', why: first <= 0 && last >= 1 ? 'wrong, then right' : 'better than before' }
  if (last < first) return { name: 'unlearned', why: first >= 1 && last <= 0 ? 'right, then wrong' : 'worse than before' }
  return { name: 'same', why: first >= 1 ? 'right both times' : first <= 0 ? 'wrong both times' : 'as before' }
}
const spreadMean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length

/** A rollout to compare with this one: one of its group with another reward, else any other. */
export function partnerOf(group: Group, key: string): string | null {
  const own = group.rows.find((row) => row.key === key)
  const others = group.rows.filter((row) => row.key !== key)
  return (others.find((row) => row.reward !== own?.reward) ?? others[0])?.key ?? null
}
