import type { Claim } from '../budget.ts'
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

/** The most that a call to a third party is likely to use, in tokens and in money. */
export function claimsOf(session: SessionState, { price, evaluated }: FrozenModel, request: FrozenRequest): readonly Claim[] {
  const most = mostOf(session, request)
  return [
    { budget: session.frozenTokenBudget, most: most.promptTokens + most.completionTokens },
    { budget: session.costBudget, most: price ? costOf(most, price) : 0 },
    ...(evaluated ? [{ budget: session.tokenBudget, most: most.completionTokens }] : []),
  ]
}
