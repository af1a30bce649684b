import type { AgentTokens, UntrainedReason } from '@aworld-train/protocol'
import { addCount } from './token-counts.ts'

/** Adds up what became of the tokens of each agent. */
export interface AgentTokenCounts {
  sampled(agent: string, tokens: number): void
  /** Tokens that were trained, with `null` as the reason, or were not. */
  add(agent: string, tokens: number, reason: UntrainedReason | null): void
  readonly byAgent: Readonly<Record<string, AgentTokens>>
}

/** Counts that start empty, or go on from others. */
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
