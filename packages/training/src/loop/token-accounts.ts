import {
  createLedger,
  type Episode,
  type LedgerSummary,
  mergeCounts,
  type TokenCounts,
  type TokenEngine,
  type TokenLedger,
  totalCount,
  type UntrainedReason,
} from '@aworld-train/core'
import type { BatchRow } from './step-samples.ts'

/** The ledger of a run and those of its policies, whose sum it is. */
export interface Ledgers {
  readonly ledger: TokenLedger
  readonly policies: Readonly<Record<string, LedgerSummary>>
}

/** The policies by their names, with what samples them. */
export type Samplers = ReadonlyMap<string, { readonly engine: Pick<TokenEngine, 'sampledTokens'> }>

interface PolicyAccount {
  /** Tokens that the sampler of this process counts. */
  readonly sampledSinceStart: () => number
  /** Tokens that earlier processes sampled. The sampler of this process has not counted them. */
  recorded: number
  trained: number
  readonly untrained: TokenCounts
}

/** Accounts for every token of a run by the policy that sampled it. The ledger of the run is their sum. */
export class TokenAccounts {
  readonly #accounts: ReadonlyMap<string, PolicyAccount>
  readonly #withVariance: { sampled: number; trained: number }

  constructor(samplers: Samplers, saved: Partial<Ledgers> | null) {
    const accounts = Array.from(samplers, ([name, { engine }]): [string, PolicyAccount] => {
      const before = engine.sampledTokens()
      const { sampled = 0, trained = 0, untrained = {} } = (samplers.size === 1 ? saved?.ledger : saved?.policies?.[name]) ?? {}
      return [name, { sampledSinceStart: () => engine.sampledTokens() - before, recorded: sampled, trained, untrained: { ...untrained } }]
    })
    this.#accounts = new Map(accounts)
    this.#withVariance = { sampled: 0, trained: 0, ...saved?.ledger?.withVariance }
  }

  /** Names of the policies. */
  get policies(): readonly string[] {
    return [...this.#accounts.keys()]
  }

  /** Adds tokens that were trained. */
  addTrained(policy: string, tokens: number): void {
    const account = this.#of(policy)
    if (account) account.trained += tokens
  }

  addUntrained(policy: string, tokens: number, reason: UntrainedReason): void {
    const account = this.#of(policy)
    if (account) mergeCounts(account.untrained, { [reason]: tokens })
  }

  /** Adds the rows of a batch that were not trained. */
  addRows(rows: readonly BatchRow[]): void {
    for (const { policy, tokens, reason } of rows) if (reason !== null) this.addUntrained(policy, tokens, reason)
  }

  /** Adds all tokens of an episode for one reason. */
  addEpisode(episode: Episode, reason: UntrainedReason): void {
    for (const [policy, tokens] of sampledByPolicy(episode)) this.addUntrained(policy, tokens, reason)
  }

  /** Adds an episode that an earlier process of the run sampled. */
  addRecorded(episode: Episode): void {
    for (const [policy, tokens] of sampledByPolicy(episode)) {
      const account = this.#of(policy)
      if (account) account.recorded += tokens
    }
  }

  /** Adds a group whose rewards differ: its sampled tokens, and those of them that were trained. */
  addVarianceGroup({ sampled, trained }: { readonly sampled: number; readonly trained: number }): void {
    this.#withVariance.sampled += sampled
    this.#withVariance.trained += trained
  }

  /** With `isComplete` false, the samplers have counted tokens that are in no account yet; only accounted tokens count then. */
  toLedgers(isComplete: boolean): Ledgers {
    const ledgers = Array.from(this.#accounts, ([name, account]) => [name, toLedger(account, isComplete)] as const)
    const sum = (key: 'sampled' | 'trained') => ledgers.reduce((total, [, ledger]) => total + ledger[key], 0)
    const untrained: TokenCounts = {}
    for (const [, ledger] of ledgers) mergeCounts(untrained, ledger.untrained)
    const ledger = createLedger({ untrained, withVariance: this.#withVariance }).toLedger({
      sampled: sum('sampled'),
      trained: sum('trained'),
    })
    return { ledger, policies: Object.fromEntries(ledgers) }
  }

  /** Of one policy alone, under whatever name; among several, of none for a model that is not theirs, whose tokens no sampler counts. */
  #of(policy: string): PolicyAccount | undefined {
    const [only] = this.#accounts.values()
    return this.#accounts.size === 1 ? only : this.#accounts.get(policy)
  }
}

function toLedger({ sampledSinceStart, recorded, trained, untrained }: PolicyAccount, isComplete: boolean): LedgerSummary {
  const accounted = trained + totalCount(untrained)
  const sampled = isComplete ? recorded + sampledSinceStart() : accounted
  return { sampled, trained, untrained: { ...untrained }, unexplained: sampled - accounted }
}

function sampledByPolicy({ trajectories }: Episode): Map<string, number> {
  const tokens = new Map<string, number>()
  for (const { policy, turns } of trajectories)
    for (const { completionTokenIds } of turns) tokens.set(policy, (tokens.get(policy) ?? 0) + completionTokenIds.length)
  return tokens
}
