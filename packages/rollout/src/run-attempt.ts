import { type AttemptExecutor, type PolicyGateway, preciseNow } from '@aworld-train/core'
import {
  type AgentEdge,
  type AttemptOutcome,
  type ErrorRecord,
  type Message,
  type RolloutRequest,
  type StopReason,
  type Timing,
  type ToolCallRecord,
  TrainError,
  type Trajectory,
  type Turn,
} from '@aworld-train/protocol'
import type { Span } from '@opentelemetry/api'
import { traceHeadersOf } from './observe/rollout-spans.ts'
import { recordedMessages } from './recorded-messages.ts'
import { decideStop } from './stop-reason.ts'
import { tieToolCalls } from './tie-tool-calls.ts'

export interface AttemptOptions {
  readonly request: RolloutRequest
  readonly attempt: number
  readonly limits: RolloutRequest['limits'] & { readonly timeoutMs: number }
  /** Those of the program, by which the gateway serves them. */
  readonly agents: readonly { readonly name: string; readonly trainable: boolean; readonly model?: string | undefined }[]
  readonly gateway: PolicyGateway
  readonly executor: AttemptExecutor
  /** The span of the attempt, which its caller ends. */
  readonly span: Span
  /** Aborts when the rollout is cancelled. */
  readonly signal: AbortSignal
  readonly onTurn: (agent: string, turn: Turn) => Promise<void>
  readonly onWarning: (error: ErrorRecord) => void
}

export interface AttemptResult {
  readonly stopReason: StopReason
  readonly error: ErrorRecord | undefined
  readonly answer: string | null
  readonly messages: readonly Message[]
  readonly trajectories: readonly Trajectory[]
  readonly edges: readonly AgentEdge[]
  readonly toolCalls: readonly ToolCallRecord[]
  readonly toolErrors: number
  /** How many of the tool calls no server answered. */
  readonly functionCalls: number
  readonly timing: Timing
}

/**
 * The coordinator's side of an attempt: opens its URLs, has its agent run, closes them, and decides why it ended. Whatever the agent
 * does, this resolves, with WORKER_LOST when its worker is gone; rejects when the session cannot be opened, and with other errors of the executor.
 */
export async function runAttempt(options: AttemptOptions): Promise<AttemptResult> {
  const { request, attempt, limits, agents, gateway, executor, span, signal } = options
  // The other columns of a row are for the reward alone: they may hold the answer.
  const { extraInfo: _, ...task } = request.task
  const { maxTurns, maxToolCalls, timeoutMs } = limits
  const traceHeaders = traceHeadersOf(span)
  const session = gateway.open({
    rollout: request.key,
    attempt,
    taskId: task.id,
    sample: request.sample,
    policy: request.policy,
    sampling: request.sampling,
    agents: agents.map(({ name, trainable, model }) => ({ name, trainable, model })),
    maxSessionTokens: limits.maxTokens,
    maxTurns,
    maxResponseTokens: limits.maxResponseTokens,
    maxCost: limits.maxCost,
    maxFrozenTokens: limits.maxFrozenTokens,
    traceHeaders,
    onTurn: options.onTurn,
  })
  let outcome: AttemptOutcome
  const startedAt = preciseNow()
  try {
    const assignment = {
      key: request.key,
      attempt,
      sample: request.sample,
      task,
      endpoints: Object.fromEntries(agents.map(({ name }) => [name, session.endpoint(name)])),
      limits: { maxTurns, maxToolCalls, timeoutMs },
      traceHeaders,
    }
    // Ended at once where the agent's side says so; closing twice is closing once.
    outcome = await executor.execute(assignment, { signal, onEnd: () => void session.close() })
  } catch (error) {
    if (error instanceof TrainError && error.code === 'WORKER_LOST') return lost(error, await session.close(), startedAt)
    throw error
  } finally {
    await session.close()
  }
  const trajectories = await session.close()
  for (const problem of outcome.problems) options.onWarning(problem)
  const { end, edges, toolCalls, toolErrors, functionCalls, timing } = outcome
  return {
    ...decideStop({ ...outcome, policyFailure: session.failure(), trajectories }),
    answer: end.kind === 'answered' ? end.answer : null,
    messages: end.kind === 'answered' && end.messages.length > 0 ? end.messages : recordedMessages(trajectories),
    trajectories,
    edges,
    toolCalls: tieToolCalls(toolCalls, trajectories),
    toolErrors,
    functionCalls,
    timing,
  }
}

/** The attempt of a worker that is gone: only what was sampled for it is left. */
function lost(error: TrainError, trajectories: readonly Trajectory[], startedAt: number): AttemptResult {
  return {
    ...{ stopReason: 'failed', error: error.toRecord(), answer: null, messages: recordedMessages(trajectories), trajectories },
    ...{ edges: [], toolCalls: [], toolErrors: 0, functionCalls: 0, timing: { startedAt, endedAt: preciseNow() } },
  }
}
