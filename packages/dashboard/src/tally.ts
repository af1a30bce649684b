import {
  createAgentTokens,
  type EvaluationSummary,
  type FailureCount,
  type LedgerSummary,
  meanWithInterval,
  parseChannelKey,
  passRates,
  type RewardMeasure,
  type RolloutRow,
  type RunSummary,
  type StepRecord,
  type StepSample,
  type StepSummary,
  type UntrainedReason,
} from '@aworld-train/core'
import { type EvaluatedRollout, type FinishedSum, type FinishedTotals, mostNamed, type StepTotals } from '@aworld-train/store'
import { evaluationName } from './evaluation-name.ts'

interface StepTokens {
  trained: number
  readonly untrained: Partial<Record<UntrainedReason, number>>
}

interface EvaluationTally {
  readonly name: string
  readonly split: string
  step: number
  /** Start of the trainer that made it. Of two, the later one counts. */
  incarnation: string | undefined
  tasks: Map<string, number[]>
  kinds: Map<string, number[]>
}

type StepMetrics = Omit<StepRecord, 'rollouts'>

/** Totals of a run's rollouts. For a running run, only changes are read again. */
export interface RunTally {
  add(totals: FinishedTotals): void
  /** Adds sampled tokens of a trained step: trained ones, or untrained ones with a reason. */
  addTokens(step: number, { agent, tokens, reason }: Pick<StepSample, 'agent' | 'tokens' | 'reason'>): void
  steps(records: readonly StepMetrics[]): StepSummary[]
  evaluations(): EvaluationSummary[]
  /** `superseded` are tokens of attempts that never get a result. */
  ledger(superseded: number): LedgerSummary
  readonly stopReasons: Readonly<Record<string, number>>
  readonly agents: RunSummary['agents']
  readonly errors: RunSummary['errors']
  readonly repeated: RunSummary['repeated']
  readonly incomplete: readonly RolloutRow[]
  readonly turns: number
  readonly toolCalls: number
  readonly cost: number
  /** Whether the trainer records the fate of its steps' rows. */
  readonly hasSamples: boolean
}

function push(lists: Map<string, number[]>, name: string, value: number): void {
  const list = lists.get(name)
  if (list) list.push(value)
  else lists.set(name, [value])
}
const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)

/** Totals of a run's evaluations, from their rollouts in the order of finishing. */
export function createEvaluationTallies() {
  const evaluations = new Map<string, EvaluationTally>()
  return {
    add(row: EvaluatedRollout): void {
      const name = evaluationName(row)
      const incarnation = parseChannelKey(row.key)?.incarnation
      const tally = evaluations.get(name) ?? { name, split: row.split, step: 0, incarnation, tasks: new Map(), kinds: new Map() }
      evaluations.set(name, tally)
      tally.step = Math.max(tally.step, row.step ?? 0)
      if (tally.incarnation !== incarnation) Object.assign(tally, { incarnation, tasks: new Map(), kinds: new Map() })
      push(tally.tasks, row.taskId, row.reward)
      push(tally.kinds, row.kind, row.reward)
    },
    summaries: () => [...evaluations.values()].map(toEvaluation),
  }
}

export function createTally(): RunTally {
  const steps = new Map<number, StepTotals>()
  const tokens = new Map<number, StepTokens>()
  const agents = createAgentTokens()
  const evaluations = createEvaluationTallies()
  const stopReasons: Record<string, number> = {}
  const errors: FailureCount[] = []
  const incomplete: RolloutRow[] = []
  const totals = { turns: 0, toolCalls: 0, cost: 0, sampled: 0, evaluation: 0 }
  const repeated = { count: 0, first: [] as RolloutRow[] }

  function addSum({
    stopReason,
    isTraining,
    rollouts,
    turns,
    toolCalls,
    sampledTokens,
    cost,
    repeated: repeatedRollouts,
  }: FinishedSum): void {
    totals.turns += turns
    totals.toolCalls += toolCalls
    totals.cost += cost
    totals.sampled += sampledTokens
    if (!isTraining) totals.evaluation += sampledTokens
    stopReasons[stopReason] = (stopReasons[stopReason] ?? 0) + rollouts
    repeated.count += repeatedRollouts
  }

  return {
    stopReasons,
    agents: agents.byAgent,
    errors,
    incomplete,
    repeated,
    get hasSamples() {
      return tokens.size > 0
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
    add(finished) {
      for (const sum of finished.sums) addSum(sum)
      for (const step of finished.steps) steps.set(step.step, step)
      for (const row of finished.evaluated) evaluations.add(row)
      repeated.first.push(...finished.repeated.slice(0, mostNamed.repeated - repeated.first.length))
      incomplete.push(...finished.incomplete.slice(0, mostNamed.incomplete - incomplete.length))
      for (const error of finished.errors) {
        const index = errors.findIndex(({ code, source }) => code === error.code && source === error.source)
        const before = errors[index]
        if (before) errors[index] = { ...before, count: before.count + error.count }
        else errors.push({ ...error })
      }
    },
    addTokens(step, { agent, tokens: count, reason }) {
      agents.sampled(agent, count)
      agents.add(agent, count, reason)
      const ofStep = tokens.get(step) ?? { trained: 0, untrained: {} }
      tokens.set(step, ofStep)
      if (reason === null) ofStep.trained += count
      else ofStep.untrained[reason] = (ofStep.untrained[reason] ?? 0) + count
    },
    steps(records) {
      const trained = new Map(records.map((record) => [record.step, record]))
      const all = [...new Set([...steps.keys(), ...trained.keys()])].sort((a, b) => a - b)
      return all.map((step) => toStep(steps.get(step) ?? { ...noTotals, step }, tokens.get(step), trained.get(step)))
    },
    evaluations: evaluations.summaries,
    ledger(superseded) {
      const untrained: Partial<Record<UntrainedReason, number>> = {}
      const add = (reason: UntrainedReason, tokens: number) => {
        if (tokens > 0) untrained[reason] = (untrained[reason] ?? 0) + tokens
      }
      add('evaluation', totals.evaluation)
      add('superseded-attempt', superseded)
      let trained = 0
      for (const ofStep of tokens.values()) {
        trained += ofStep.trained
        for (const [reason, count] of Object.entries(ofStep.untrained)) add(reason as UntrainedReason, count)
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

/** Totals of a step in which nothing finished. */
const noTotals: Omit<StepTotals, 'step'> = {
  rewards: [],
  groups: { right: 0, mixed: 0, wrong: 0 },
  waitMs: { queue: 0, engine: 0, tools: 0, agent: 0 },
  turns: 0,
  toolCalls: 0,
  tokens: 0,
  attempts: 0,
}

function toStep(totals: StepTotals, tokens: StepTokens | undefined, record: StepMetrics | undefined): StepSummary {
  const { step, rewards, groups, waitMs, attempts } = totals
  const count = Math.max(1, rewards.length)
  return {
    step,
    ...(rewards.length > 0 ? measure(rewards) : { rollouts: 0, reward: 0, interval: [0, 1] as const }),
    metrics: record?.metrics ?? null,
    weightVersion: record?.weightVersion ?? null,
    checkpoint: record?.checkpoint ?? null,
    groups,
    turns: totals.turns / count,
    toolCalls: totals.toolCalls / count,
    tokens: totals.tokens / count,
    waitMs,
    trainedTokens: tokens?.trained ?? 0,
    untrainedTokens: { ...tokens?.untrained },
    attempts,
  }
}

function toEvaluation({ name, split, step, tasks, kinds }: EvaluationTally): EvaluationSummary {
  const rewards = [...tasks.values()]
  const perTask = rewards.map((each) => sum(each) / each.length)
  const rollouts = sum(rewards.map(({ length }) => length))
  return {
    name,
    split,
    step,
    tasks: tasks.size,
    ...measure(perTask, rollouts),
    byKind: Object.fromEntries([...kinds].map(([kind, ofKind]) => [kind, measure(ofKind)])),
    passAtK: Object.fromEntries(Object.entries(passRates(rewards)).map(([k, values]) => [k, sum(values) / values.length])),
  }
}
