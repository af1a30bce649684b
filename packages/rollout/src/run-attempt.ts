import {
  type AgentAnswer,
  type AgentProgram,
  type AttemptState,
  createAttemptStates,
  type Environment,
  type PolicyGateway,
  preciseNow,
} from '@aworld-train/core'
import {
  type AgentEdge,
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
import { createAttemptContext } from './attempt-context.ts'
import { createAttemptTools } from './attempt-tools.ts'
import { traceHeadersOf, withSpan } from './observe/rollout-spans.ts'
import { recordedMessages } from './recorded-messages.ts'
import { cancelled, rolloutEnded, timeLimit } from './rollout-errors.ts'
import { type AgentOutcome, decideStop } from './stop-reason.ts'
import { createTimeBudget } from './time-budget.ts'
import { createToolJournal } from './tool-journal.ts'

export interface AttemptOptions {
  readonly request: RolloutRequest
  readonly attempt: number
  readonly limits: RolloutRequest['limits'] & { readonly timeoutMs: number }
  readonly program: AgentProgram
  readonly gateway: PolicyGateway
  readonly environment: Environment
  readonly abandonAfterMs: number
  readonly leaseTimeoutMs: number
  /** The span of the attempt, which its caller ends. */
  readonly span: Span
  /** Aborts when the rollout is cancelled. */
  readonly signal: AbortSignal
  readonly onTurn: (agent: string, turn: Turn) => Promise<void>
  readonly onWarning: (error: Error) => void
}

export interface AttemptResult {
  readonly stopReason: StopReason
  readonly error: TrainError | undefined
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

/** Runs the agent once. Whatever it does, this resolves, with its session closed and its tools given back; rejects only when the session cannot be opened. */
export async function runAttempt(options: AttemptOptions): Promise<AttemptResult> {
  const { request, attempt, limits, program, gateway, environment, span, signal } = options
  const { key } = request
  // The other columns of a row are for the reward alone: they may hold the answer.
  const { extraInfo: _, setup, ...task } = request.task
  const startedAt = preciseNow()
  const stop = new AbortController()
  const session = gateway.open({
    rollout: key,
    attempt,
    taskId: task.id,
    sample: request.sample,
    policy: request.policy,
    sampling: request.sampling,
    agents: program.agents.map(({ name, trainable, model }) => ({ name, trainable, model })),
    maxSessionTokens: limits.maxTokens,
    maxTurns: limits.maxTurns,
    maxResponseTokens: limits.maxResponseTokens,
    maxCost: limits.maxCost,
    maxFrozenTokens: limits.maxFrozenTokens,
    traceHeaders: traceHeadersOf(span),
    onTurn: options.onTurn,
  })
  const budget = createTimeBudget(limits.timeoutMs, () => stop.abort(timeLimit(key, limits.timeoutMs)))
  const cancel = () => stop.abort(cancelled(key, signal.reason))
  signal.addEventListener('abort', cancel, { once: true })
  if (signal.aborted) cancel()

  const { maxTurns, maxToolCalls } = limits
  const edges: AgentEdge[] = []
  const journal = createToolJournal({ rollout: key, maxToolCalls, span, signal: stop.signal, onLimit: (error) => stop.abort(error) })
  const tools = createAttemptTools({
    request: { rollout: key, attempt, sample: request.sample, task: { id: task.id, files: task.files, setup } },
    environment,
    journal,
    budget,
    signal: stop.signal,
    leaseTimeoutMs: options.leaseTimeoutMs,
    // Whatever the agent makes of it, an attempt that lost what a server kept has failed.
    onLost: (error) => stop.abort(error),
  })
  const attemptContext = { rollout: key, attempt, task, signal: stop.signal }
  const states = createAttemptStates({ attempt: attemptContext, timeoutMs: options.leaseTimeoutMs, graceMs: options.abandonAfterMs })
  /** An attempt whose state cannot be set up has failed, even where its agent catches the error. */
  const state = async <State>(definition: AttemptState<State>): Promise<State> => {
    const release = budget.hold()
    try {
      return await states.get(definition)
    } catch (error) {
      stop.abort(error)
      throw error
    } finally {
      release()
    }
  }
  const context = createAttemptContext({ attempt: attemptContext, program, session, journal, tools, state, edges, maxTurns, maxToolCalls })

  const outcome = await outcomeOf(() => withSpan(span, () => program.run(task, context)), stop.signal, options.abandonAfterMs)
  const endedAt = preciseNow()
  const aborted = stop.signal.aborted ? (stop.signal.reason as TrainError) : null
  budget.stop()
  signal.removeEventListener('abort', cancel)
  stop.abort(rolloutEnded(key))
  const [trajectories, leaseProblem, stateProblems] = await Promise.all([session.close(), tools.close(), states.close()])
  for (const problem of leaseProblem ? [leaseProblem, ...stateProblems] : stateProblems) options.onWarning(problem)

  const { stopReason, error } = decideStop({
    outcome,
    aborted,
    policyFailure: session.failure(),
    environmentFailure: tools.failure(),
    trajectories,
  })
  const { errors: toolErrors, functions: functionCalls } = journal.counts()
  const answer = outcome.kind === 'answered' ? outcome.answer : null
  return {
    stopReason,
    error,
    answer: answer?.answer ?? null,
    messages: answer?.messages.length ? answer.messages : recordedMessages(trajectories),
    trajectories,
    edges: [...edges],
    toolCalls: journal.records(trajectories),
    toolErrors,
    functionCalls,
    timing: { startedAt, endedAt },
  }
}

/** How `run` ended, or `abandoned` when it has not `graceMs` after the abort. */
function outcomeOf(run: () => Promise<AgentAnswer>, signal: AbortSignal, graceMs: number): Promise<AgentOutcome> {
  return new Promise((resolve) => {
    let grace: NodeJS.Timeout | undefined
    const aborted = () => {
      grace = setTimeout(() => settle({ kind: 'abandoned' }), graceMs)
    }
    const settle = (outcome: AgentOutcome) => {
      clearTimeout(grace)
      signal.removeEventListener('abort', aborted)
      resolve(outcome)
    }
    if (signal.aborted) aborted()
    else signal.addEventListener('abort', aborted, { once: true })
    // An agent that is not async may throw before it returns a promise.
    new Promise<AgentAnswer>((resolveRun) => resolveRun(run())).then(
      (answer) => settle(isAnswer(answer) ? { kind: 'answered', answer } : { kind: 'threw', error: notAnAnswer(answer) }),
      (error: unknown) => settle({ kind: 'threw', error }),
    )
  })
}

function isAnswer(value: unknown): value is AgentAnswer {
  const { answer, messages } = (value ?? {}) as Partial<AgentAnswer>
  return (answer === null || typeof answer === 'string') && Array.isArray(messages)
}

function notAnAnswer(value: unknown): TrainError {
  const what = value === null || value === undefined ? `${value}` : typeof value === 'object' ? 'another object' : `a ${typeof value}`
  return new TrainError('AGENT_FAILED', `The agent program returned ${what}; return { answer, messages }: the text or null, and a list.`)
}
