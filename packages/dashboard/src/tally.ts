import {
  type EvaluationSummary,
  type LedgerSummary,
  meanWithInterval,
  type RewardMeasure,
  type RolloutRow,
  type RolloutWaits,
  type StepRecord,
  type StepSummary,
} from '@aworld-train/core'
import { parseChannelKey, type UntrainedReason } from '@aworld-train/protocol'
import { evaluationName } from './evaluation-name.ts'

interface StepTally {
  readonly rewards: number[]
  readonly groups: Map<string, { least: number; most: number }>
  readonly waitMs: Record<keyof RolloutWaits, number>
  turns: number
  toolCalls: number
  tokens: number
  attempts: number
  trainedTokens: number
  readonly untrainedTokens: Partial<Record<UntrainedReason, number>>
}

interface EvaluationTally {
  readonly name: string
  readonly split: string
  step: number
  /** The start of the trainer that made it: of two the later one counts. */
  incarnation: string | undefined
  tasks: Map<string, number[]>
  kinds: Map<string, number[]>
}

type StepMetrics = Omit<StepRecord, 'rollouts'>

/** What a run's rollouts add up to: each finished one is counted once, so that a run that goes on is never read again. */
export interface RunTally {
  addRollout(row: RolloutRow): void
  /** Sampled tokens of a trained step that were trained, or were not for a reason. */
  addTokens(step: number, tokens: number, reason: UntrainedReason | null): void
  steps(records: readonly StepMetrics[]): StepSummary[]
  evaluations(): EvaluationSummary[]
  /** `superseded` are tokens of attempts that never get a result. */
  ledger(superseded: number): LedgerSummary
  readonly stopReasons: Readonly<Record<string, number>>
  readonly errors: Readonly<Record<string, { readonly count: number; readonly rollout: string; readonly message: string }>>
  readonly incomplete: readonly RolloutRow[]
  readonly turns: number
  readonly toolCalls: number
  readonly cost: number
  /** Whether the trainer keeps what became of the rows of its steps. */
  readonly hasSamples: boolean
}

const mostIncomplete = 100

const isTraining = ({ split }: RolloutRow) => split === 'train'
function push(lists: Map<string, number[]>, name: string, value: number): void {
  const list = lists.get(name)
  if (list) list.push(value)
  else lists.set(name, [value])
}
const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)

export function createTally(): RunTally {
  const steps = new Map<number, StepTally>()
  const evaluations = new Map<string, EvaluationTally>()
  const stopReasons: Record<string, number> = {}
  const errors: Record<string, { count: number; rollout: string; message: string }> = {}
  const incomplete: RolloutRow[] = []
  const totals = { samples: 0, turns: 0, toolCalls: 0, cost: 0, sampled: 0, evaluation: 0 }

  function stepTally(step: number): StepTally {
    const tally = steps.get(step) ?? {
      ...{ rewards: [], groups: new Map(), waitMs: { queue: 0, engine: 0, tools: 0, agent: 0 } },
      ...{ turns: 0, toolCalls: 0, tokens: 0, attempts: 0, trainedTokens: 0, untrainedTokens: {} },
    }
    steps.set(step, tally)
    return tally
  }

  function addTraining(row: RolloutRow, step: number): void {
    const tally = stepTally(step)
    const reward = row.reward ?? 0
    tally.rewards.push(reward)
    const group = tally.groups.get(row.group)
    tally.groups.set(
      row.group,
      group ? { least: Math.min(group.least, reward), most: Math.max(group.most, reward) } : { least: reward, most: reward },
    )
    for (const part of ['queue', 'engine', 'tools', 'agent'] as const) tally.waitMs[part] += row.waitMs[part]
    tally.turns += row.turns
    tally.toolCalls += row.toolCalls
    tally.tokens += row.sampledTokens
    tally.attempts = Math.max(tally.attempts, row.attempt)
  }

  function addEvaluation(row: RolloutRow): void {
    const name = evaluationName(row)
    const incarnation = parseChannelKey(row.key)?.incarnation
    const tally = evaluations.get(name) ?? { name, split: row.split, step: 0, incarnation, tasks: new Map(), kinds: new Map() }
    evaluations.set(name, tally)
    tally.step = Math.max(tally.step, row.step ?? 0)
    if (tally.incarnation !== incarnation) Object.assign(tally, { incarnation, tasks: new Map(), kinds: new Map() })
    const reward = row.reward ?? 0
    push(tally.tasks, row.taskId, reward)
    push(tally.kinds, row.kind, reward)
  }

  return {
    stopReasons,
    errors,
    incomplete,
    get hasSamples() {
      return totals.samples > 0
    },
    get turns() {
      return totals.turns
    },
    get toolCalls() {
      return totals.toolCalls
    },
    get cost() {
      return totals.cost
    },
    addRollout(row) {
      totals.turns += row.turns
      totals.toolCalls += row.toolCalls
      totals.cost += row.cost
      totals.sampled += row.sampledTokens
      if (isTraining(row) && row.step !== null) addTraining(row, row.step)
      else if (!isTraining(row)) {
        totals.evaluation += row.sampledTokens
        addEvaluation(row)
      }
      if (row.stopReason) stopReasons[row.stopReason] = (stopReasons[row.stopReason] ?? 0) + 1
      if (row.stopReason !== 'completed' && incomplete.length < mostIncomplete) incomplete.push(row)
      if (row.error) {
        const { code, message } = row.error
        errors[code] = { rollout: row.key, message, ...errors[code], count: (errors[code]?.count ?? 0) + 1 }
      }
    },
    addTokens(step, tokens, reason) {
      totals.samples += 1
      const tally = stepTally(step)
      if (reason === null) tally.trainedTokens += tokens
      else tally.untrainedTokens[reason] = (tally.untrainedTokens[reason] ?? 0) + tokens
    },
    steps(records) {
      const trained = new Map(records.map((record) => [record.step, record]))
      const all = [...new Set([...steps.keys(), ...trained.keys()])].sort((a, b) => a - b)
      return all.map((step) => toStep(step, stepTally(step), trained.get(step)))
    },
    evaluations: () => [...evaluations.values()].map(toEvaluation),
    ledger(superseded) {
      const untrained: Partial<Record<UntrainedReason, number>> = {}
      const add = (reason: UntrainedReason, tokens: number) => {
        if (tokens > 0) untrained[reason] = (untrained[reason] ?? 0) + tokens
      }
      add('evaluation', totals.evaluation)
      add('superseded-attempt', superseded)
      let trained = 0
      for (const step of steps.values()) {
        trained += step.trainedTokens
        for (const [reason, tokens] of Object.entries(step.untrainedTokens)) add(reason as UntrainedReason, tokens)
      }
      const sampled = totals.sampled + superseded
      return { sampled, trained, untrained, unexplained: sampled - trained - sum(Object.values(untrained)) }
    },
  }
}

function measure(rewards: readonly number[], rollouts = rewards.length): RewardMeasure {
  const { mean, interval } = meanWithInterval(rewards)
  return { rollouts, reward: mean, interval }
}

function toStep(step: number, tally: StepTally, record: StepMetrics | undefined): StepSummary {
  const count = Math.max(1, tally.rewards.length)
  const groups = { right: 0, mixed: 0, wrong: 0 }
  for (const { least, most } of tally.groups.values()) groups[least < most ? 'mixed' : least >= 1 ? 'right' : 'wrong'] += 1
  return {
    step,
    ...(tally.rewards.length > 0 ? measure(tally.rewards) : { rollouts: 0, reward: 0, interval: [0, 1] as const }),
    metrics: record?.metrics ?? null,
    weightVersion: record?.weightVersion ?? null,
    checkpoint: record?.checkpoint ?? null,
    groups,
    ...{ turns: tally.turns / count, toolCalls: tally.toolCalls / count, tokens: tally.tokens / count },
    waitMs: { ...tally.waitMs },
    ...{ trainedTokens: tally.trainedTokens, untrainedTokens: { ...tally.untrainedTokens }, attempts: tally.attempts },
  }
}

function toEvaluation({ name, split, step, tasks, kinds }: EvaluationTally): EvaluationSummary {
  const perTask = [...tasks.values()].map((rewards) => sum(rewards) / rewards.length)
  const rollouts = sum([...tasks.values()].map(({ length }) => length))
  return {
    ...{ name, split, step, tasks: tasks.size },
    ...measure(perTask, rollouts),
    byKind: Object.fromEntries([...kinds].map(([kind, rewards]) => [kind, measure(rewards)])),
  }
}
