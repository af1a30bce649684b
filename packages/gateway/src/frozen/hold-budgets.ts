import type { FrozenModel } from '../models/model-table.ts'
import type { SessionState } from '../session-state.ts'
import { costOf, estimatedUsage } from './cost.ts'
import type { FrozenRequest } from './frozen-request.ts'

/** Tokens of an answer whose request names no limit, unless the rollout has had a longer one. */
const assumedTokens = 4096

/** Fields for the limit of an answer in the dialects that third parties speak. */
const limits = ['max_tokens', 'max_completion_tokens', 'max_output_tokens']

function mostOf(session: SessionState, { call, json }: FrozenRequest) {
  const body = json as Readonly<Record<string, unknown>>
  const bodyLimits = limits.map((name) => body[name]).filter((value) => typeof value === 'number' && value > 0) as number[]
  const each = call?.maxTokens ?? (bodyLimits.length > 0 ? Math.min(...bodyLimits) : Math.max(assumedTokens, session.longestFrozenAnswer))
  const answers = typeof body['n'] === 'number' && body['n'] > 1 ? body['n'] : 1
  return { ...estimatedUsage(call, []), completionTokens: each * answers }
}

/**
 * Reserves the most that a call to a third party is likely to use, in tokens and in money, and resolves to the function that ends the
 * reservation. Waits while the reservations of other calls leave too little. Rejects with the signal's reason.
 */
export async function holdBudgets(
  session: SessionState,
  { price }: FrozenModel,
  request: FrozenRequest,
  signal: AbortSignal,
): Promise<() => void> {
  const { frozenTokenBudget, costBudget } = session
  const most = mostOf(session, request)
  const tokens = most.promptTokens + most.completionTokens
  const heldTokens = frozenTokenBudget.tryHold(tokens) ?? (await frozenTokenBudget.hold(tokens, signal))
  try {
    const cost = price ? costOf(most, price) : 0
    const heldCost = costBudget.tryHold(cost) ?? (await costBudget.hold(cost, signal))
    return () => {
      frozenTokenBudget.release(heldTokens)
      costBudget.release(heldCost)
    }
  } catch (cause) {
    frozenTokenBudget.release(heldTokens)
    throw cause
  }
}
