import type { AgentTokens, UntrainedReason } from '../protocol/token-ledger.ts'
import { addCount } from './token-counts.ts'

/** Sums up the account of each agent's tokens. */
export interface AgentTokenCounts {
  sampled(agent: string, tokens: number): void
  /** Adds tokens with the reason why they were not trained, or `null` if they were. */
  add(agent: string, tokens: number, reason: UntrainedReason | null): void
  readonly byAgent: Readonly<Record<string, AgentTokens>>
}

/** Creates counts that start empty or from given ones. */
export function createAgentTokens(from: Readonly<Record<string, AgentTokens>> = {}): AgentTokenCounts {
  const byAgent: Record<string, AgentTokens> = structuredClone(from)
  const of = (agent: string) => (byAgent[agent] ??= { sampled: 0, trained: 0, untrained: {} })
  return {
    byAgent,
    sampled(agent, tokens) {
      of(agent).sampled += tokens
    },
    add(agent, tokens, reason) {
      if (reason === null) of(agent).trained += tokens
      else addCount(of(agent).untrained, reason, tokens)
    },
  }
}
