import {
  type AgentDeclaration,
  type AttemptExecutor,
  type AttemptOutcome,
  type ErrorRecord,
  fromCollectedFile,
  linkInvocations,
  type Message,
  orAborted,
  type PolicyGateway,
  preciseNow,
  type RolloutRequest,
  type StopReason,
  type Timing,
  type ToolCallRecord,
  TrainError,
  type Trajectory,
  type Turn,
  type WorkspaceFile,
  workedSideBySide,
} from '@aworld-train/core'
import type { Span } from '@opentelemetry/api'
import { emptyOutcome } from './empty-outcome.ts'
import { traceHeadersOf } from './observe/rollout-spans.ts'
import { recordedMessages } from './recorded-messages.ts'
import { answeredIds, decideStop } from './stop-reason.ts'
import { tieToolCalls } from './tie-tool-calls.ts'

export interface AttemptOptions {
  readonly request: RolloutRequest
  readonly attempt: number
  readonly limits: RolloutRequest['limits'] & { readonly timeoutMs: number }
  /** Agents of the program, as the gateway serves them. */
  readonly agents: readonly Pick<AgentDeclaration, 'name' | 'trainable' | 'model' | 'randomKey'>[]
  readonly gateway: PolicyGateway
  readonly executor: AttemptExecutor
  /** The span of the attempt, which its caller ends. */
  readonly span: Span
  /** Aborts when the rollout is cancelled. */
  readonly signal: AbortSignal
  /** Aborts when the executor is gone, with the reason. */
  readonly lost: AbortSignal
  /** Called when the agent's side has ended, before the URLs are closed for good. */
  readonly onOutcome: () => void
  readonly requiresModelCall: boolean
  readonly onTurn: (trajectory: string, turn: Turn) => Promise<void>
  readonly onWarning: (error: ErrorRecord) => void
}

export interface AttemptResult {
  readonly stopReason: StopReason
  readonly limitedSideBySide: boolean
  readonly error: ErrorRecord | undefined
  readonly answer: string | null
  readonly messages: readonly Message[]
  readonly trajectories: readonly Trajectory[]
  readonly toolCalls: readonly ToolCallRecord[]
  readonly toolErrors: number
  /** How many of the tool calls no server answered. */
  readonly functionCalls: number
  /** `null` if none are collected. */
  readonly files: readonly WorkspaceFile[] | null
  readonly filesRefused: ErrorRecord | undefined
  readonly timing: Timing
}

/**
 * The coordinator's side of an attempt: it opens the URLs, has the agent run, closes the URLs, and decides why the attempt
 * ended. It resolves whatever the agent does, also when the worker is lost. It rejects when the session cannot be opened, and
 * with other errors of the executor.
 */
export async function runAttempt(options: AttemptOptions): Promise<AttemptResult> {
  const { request, attempt, limits, agents, gateway, executor, span, signal, lost } = options
  // Other columns of a row may hold the answer, so only the reward gets them.
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
    agents: agents.map(({ name, trainable, model, randomKey }) => ({ name, trainable, model, randomKey })),
    maxSessionTokens: limits.maxTokens,
    maxTurns,
    maxResponseTokens: limits.maxResponseTokens,
    maxCost: limits.maxCost,
    maxFrozenTokens: limits.maxFrozenTokens,
    traceHeaders,
    onTurn: options.onTurn,
    onWait: (waits) => (waits ? executor.hold({ key: request.key, attempt }) : executor.resume({ key: request.key, attempt })),
  })
  const startedAt = preciseNow()
  const assignment = {
    key: request.key,
    attempt,
    sample: request.sample,
    task,
    endpoints: Object.fromEntries(agents.map(({ name }) => [name, session.endpoint(name)])),
    limits: { maxTurns, maxToolCalls, timeoutMs },
    traceHeaders,
  }
  // The URLs close as soon as the agent's side says that the agent has ended; closing them twice does no harm.
  const end = () => void session.close()
  const outcome = await orAborted(executor.execute(assignment, { signal, onEnd: end }), lost).catch(async (error: unknown) => {
    const code = error instanceof TrainError ? error.code : null
    if (code === 'WORKER_LOST' || code === 'ROLLOUT_CANCELLED') return withoutOutcome(error as TrainError, startedAt)
    await session.close()
    throw error
  })
  if (!lost.aborted) options.onOutcome()
  const trajectories = linkInvocations(await session.close(), outcome.invocations)
  for (const problem of outcome.problems) options.onWarning(problem)
  const { toolCalls, toolErrors, functionCalls, timing } = outcome
  const answer = outcome.end.kind === 'answered' ? outcome.end : null
  const policyFailure = session.failure()
  const decision = decideStop({ ...outcome, policyFailure, trajectories, requiresModelCall: options.requiresModelCall })
  return {
    ...decision,
    limitedSideBySide: metLimitSideBySide(outcome, policyFailure, trajectories),
    answer: answer?.answer ?? null,
    messages: answer?.messages.length ? answer.messages : recordedMessages(trajectories, answer?.answer ?? null),
    trajectories,
    toolCalls: tieToolCalls(toolCalls, trajectories),
    toolErrors,
    functionCalls,
    files: outcome.files?.map(fromCollectedFile) ?? null,
    filesRefused: outcome.filesRefused,
    timing,
  }
}

/**
 * Whether chance decided how far invocations came that worked side by side: they met a limit that they share, or one of them threw and the
 * others were told to stop.
 */
function metLimitSideBySide(
  { end, aborted, invocations }: AttemptOutcome,
  policyFailure: Error | null,
  trajectories: readonly Trajectory[],
): boolean {
  if (end.kind === 'answered' && end.metSharedLimit) return workedSideBySide(trajectories, invocations, () => true)
  const isLimit = aborted?.code === 'AGENT_LIMIT' || (policyFailure instanceof TrainError && policyFailure.code === 'AGENT_LIMIT')
  const withAnswer = answeredIds(invocations)
  return (isLimit || end.kind === 'threw') && workedSideBySide(trajectories, invocations, (id) => !withAnswer.has(id))
}

/** Stands in for the outcome of an agent's side that is gone. */
function withoutOutcome(error: TrainError, startedAt: number): AttemptOutcome {
  return {
    end: { kind: 'abandoned' },
    aborted: error.toRecord(),
    ...emptyOutcome(),
    timing: { startedAt, endedAt: preciseNow() },
  }
}
