import {
  type AgentTokenCounts,
  type AgentTokens,
  createAgentTokens,
  createLedger,
  type Episode,
  maskedTokens,
  mergeCounts,
  parseChannelKey,
  type TokenCounts,
  type TokenLedger,
  type TrainerRowAssembly,
  type TrainerRowOptions,
  toTrainerRows,
  totalCount,
} from '@aworld-train/core'
import type { RecordedCall } from '@aworld-train/store'
import type { IncarnationLedger } from './read-ledger.ts'
import { type IncarnationRecord, lastStandingSteps, standingBatches } from './standing-batches.ts'

export interface TokenLedgerInput {
  readonly ledgers: readonly IncarnationLedger[]
  /** All starts of the trainer, in their order. */
  readonly incarnations: readonly IncarnationRecord[]
  /** Every call of the policy that the store has, including those of superseded attempts. */
  readonly calls: Iterable<RecordedCall>
  /** The result of a rollout; `null` if it has none. */
  readonly episode: (key: string) => Episode | null
  /** How rows were chosen. */
  readonly rows: Omit<TrainerRowOptions, 'evaluation'>
}

export interface TrainerTokenLedger {
  readonly ledger: TokenLedger
  /** Tokens of training rollouts with a result, by agent. */
  readonly agents: Readonly<Record<string, AgentTokens>>
  /** Starts of which steps or rollouts were discarded. */
  readonly superseded: readonly { readonly incarnation: string; readonly steps: readonly number[]; readonly tokens: number }[]
  /** Keys that are in more than one batch; their tokens would be trained twice. */
  readonly trainedTwice: readonly string[]
  /** Sampled tokens that no model call received, as the bridge reports them, by reason. */
  readonly undelivered: Readonly<Record<string, number>>
  /** Tokens that the bridge delivered and the store does not have. They were lost when this process died; without a death there are 0. */
  readonly lostWithoutWord: number
  /** Tokens as the engines counted them; `null` if they do not count. */
  readonly engineTokens: number | null
  /** |rollout − actor| logprob of the first batch, and the largest one. `null` if it was not measured. */
  readonly logprobDifference: { readonly first: number | null; readonly largest: number | null }
}

/**
 * Accounts for every token: those in the trainer's answers (`sampled`), those in its batches with mask 1 (`trained`), and a reason from the
 * store for each of the others. A call that the trainer answered and the store does not have was abandoned. A call that the store has and
 * the trainer never answered is unexplained.
 */
export function toTokenLedger(input: TokenLedgerInput): TrainerTokenLedger {
  const { ledgers, incarnations, episode } = input
  const ledger = createLedger()
  const agents = createAgentTokens()
  const answers = groupBy(
    ledgers.flatMap(({ sampled }) => sampled),
    ({ key }) => key,
  )
  const recorded = groupBy(input.calls, ({ key }) => key)
  const batches = standingBatches(ledgers, incarnations)
  const trained = new Map<string, number>()
  const batchesOf = new Map<string, number>()
  for (const { keys } of batches) {
    for (const { key, maskTokens } of keys) {
      trained.set(key, (trained.get(key) ?? 0) + maskTokens)
      batchesOf.set(key, (batchesOf.get(key) ?? 0) + 1)
    }
  }
  const standing = lastStandingSteps(incarnations)
  const supersededTokens = new Map<string, number>()
  const groups = new Map<string, GroupTokens>()
  const reports = groupBy(
    ledgers.flatMap(({ undelivered }) => undelivered),
    ({ key }) => key,
  )
  let lostWithoutWord = 0
  let sampled = 0
  for (const key of new Set([...answers.keys(), ...recorded.keys(), ...trained.keys()])) {
    const calls = recorded.get(key) ?? []
    const answered = (answers.get(key) ?? []).reduce((sum, { tokens }) => sum + tokens, 0)
    sampled += answered
    const parts = parseChannelKey(key)
    const isTrained = trained.has(key)
    if (parts?.partition === 'train' && !isTrained && parts.step > (standing.get(parts.incarnation) ?? Number.POSITIVE_INFINITY)) {
      ledger.add('superseded-attempt', answered)
      supersededTokens.set(parts.incarnation, (supersededTokens.get(parts.incarnation) ?? 0) + answered)
      continue
    }
    if (parts?.partition === 'val') {
      ledger.add('evaluation', answered)
      continue
    }
    const result = episode(key)
    if (!result && calls.some(({ isLost }) => isLost)) {
      ledger.add('lost-record', answered - (trained.get(key) ?? 0))
      continue
    }
    const abandoned = unrecorded(answers.get(key) ?? [], calls)
    ledger.add('abandoned-turn', abandoned)
    lostWithoutWord += Math.max(0, abandoned - sumOf(reports.get(key) ?? []))
    const last = result?.attempt ?? Number.POSITIVE_INFINITY
    ledger.add(result ? 'superseded-attempt' : 'cancelled-episode', sumOf(calls.filter(({ attempt }) => attempt !== last)))
    if (!result) continue
    const assembly = toTrainerRows(result, { ...input.rows, evaluation: false })
    const { omitted, sampled: sampledTokens } = assembly
    addAgents(agents, assembly, isTrained)
    ledger.merge(isTrained ? omitted : untrainedOf(omitted, sampledTokens))
    const rewards = assembly.rows.length > 0 ? assembly.rows.map(({ reward }) => reward) : [result.reward]
    if (parts) noteRewards(groups, key.slice(0, key.lastIndexOf('/')), rewards, { sampled: answered, trained: trained.get(key) ?? 0 })
  }
  for (const { rewards, ...tokens } of groups.values()) if (rewards.size > 1) ledger.addVarianceGroup(tokens)
  const differences = batches.map(({ maxLogprobDifference }) => maxLogprobDifference).filter((each) => each !== null)
  const engines = ledgers.map(({ engineTokens }) => engineTokens).filter((each) => each !== null)
  return {
    ledger: ledger.toLedger({ sampled, trained: [...trained.values()].reduce((sum, tokens) => sum + tokens, 0) }),
    agents: agents.byAgent,
    superseded: describeSuperseded(input, supersededTokens),
    trainedTwice: [...batchesOf].filter(([, count]) => count > 1).map(([key]) => key),
    undelivered: Object.fromEntries(
      Map.groupBy([...reports.values()].flat(), ({ reason }) => reason)
        .entries()
        .map(([reason, lines]) => [reason, sumOf(lines)]),
    ),
    lostWithoutWord,
    engineTokens: engines.length === 0 ? null : engines.reduce((sum, tokens) => sum + tokens, 0),
    logprobDifference: {
      first: batches[0]?.maxLogprobDifference ?? null,
      largest: differences.length === 0 ? null : Math.max(...differences),
    },
  }
}

/** Counts the rows of a rollout by agent. If the trainer took the rollout, it has trained all its rows; otherwise none. */
function addAgents(agents: AgentTokenCounts, { rows, omittedTurns }: TrainerRowAssembly, isTrained: boolean): void {
  for (const row of rows) agents.add(row.agent, maskedTokens(row), isTrained ? null : 'unselected-by-trainer')
  for (const { agent, tokens, reason } of omittedTurns) agents.add(agent, tokens, reason)
}

interface GroupTokens {
  readonly rewards: Set<number | null>
  sampled: number
  trained: number
}

function noteRewards(
  groups: Map<string, GroupTokens>,
  group: string,
  rewards: readonly (number | null)[],
  { sampled, trained }: Omit<GroupTokens, 'rewards'>,
): void {
  const tokens = groups.get(group) ?? { rewards: new Set(), sampled: 0, trained: 0 }
  groups.set(group, tokens)
  for (const reward of rewards) tokens.rewards.add(reward)
  tokens.sampled += sampled
  tokens.trained += trained
}

/** Reasons for the tokens of a rollout that is in no batch: those of its own, and for the rest that the trainer did not take them. */
function untrainedOf(omitted: TokenCounts, sampled: number): TokenCounts {
  const counts: TokenCounts = {}
  mergeCounts(counts, omitted)
  mergeCounts(counts, { 'unselected-by-trainer': sampled - totalCount(omitted) })
  return counts
}

/** Counts the tokens of answers that match no call of the store. Each call takes one answer of its length. */
function unrecorded(answers: readonly { readonly tokens: number }[], calls: readonly RecordedCall[]): number {
  const lengths = new Map<number, number>()
  for (const { tokens } of calls) lengths.set(tokens, (lengths.get(tokens) ?? 0) + 1)
  let abandoned = 0
  for (const { tokens } of answers) {
    const remaining = lengths.get(tokens) ?? 0
    if (remaining > 0) lengths.set(tokens, remaining - 1)
    else abandoned += tokens
  }
  return abandoned
}

function describeSuperseded(
  { ledgers, incarnations }: TokenLedgerInput,
  tokens: ReadonlyMap<string, number>,
): TrainerTokenLedger['superseded'] {
  const standing = new Set(standingBatches(ledgers, incarnations))
  return ledgers.flatMap(({ incarnation, trained }) => {
    const steps = [...new Set(trained.filter((line) => !standing.has(line)).map(({ step }) => step))]
    const count = tokens.get(incarnation) ?? 0
    return steps.length > 0 || count > 0 ? [{ incarnation, steps, tokens: count }] : []
  })
}

const sumOf = (calls: readonly { readonly tokens: number }[]) => calls.reduce((sum, { tokens }) => sum + tokens, 0)

function groupBy<T>(values: Iterable<T>, keyOf: (value: T) => string): Map<string, T[]> {
  return Map.groupBy(values, keyOf)
}
