import type { AgentAnswer } from '@aworld-train/core'
import { errorMessage, StopReason, TrainError, type Trajectory, type Turn, toTrainError } from '@aworld-train/protocol'

/** How the agent's run ended, seen from outside. `abandoned`: it did not return after its signal aborted. */
export type AgentOutcome =
  | { readonly kind: 'answered'; readonly answer: AgentAnswer }
  | { readonly kind: 'threw'; readonly error: unknown }
  | { readonly kind: 'abandoned' }

export interface StopInput {
  readonly outcome: AgentOutcome
  /** Why the rollout's signal aborted before the outcome, `null` when it did not. */
  readonly aborted: TrainError | null
  /** The first limit or failure that the gateway met. */
  readonly policyFailure: Error | null
  /** The first lost tool server or refused lease. */
  readonly environmentFailure: TrainError | null
  readonly trajectories: readonly Trajectory[]
}

export interface StopDecision {
  readonly stopReason: StopReason
  readonly error?: TrainError | undefined
}

/** Why an episode ended. A limit outweighs an answer given after it; a failure that the agent got over does not. */
export function decideStop({ outcome, aborted, policyFailure, environmentFailure, trajectories }: StopInput): StopDecision {
  const failure = policyFailure === null ? null : toTrainError(policyFailure, 'POLICY_UNAVAILABLE')
  const limit = limitOf(aborted) ?? limitOf(failure)
  if (limit) return limit
  // An abort that is no limit is a failure of what the rollout runs in.
  if (aborted) return { stopReason: 'failed', error: aborted }
  if (outcome.kind === 'abandoned') return { stopReason: 'failed', error: new TrainError('AGENT_FAILED', 'The agent did not return.') }
  if (outcome.kind === 'threw') {
    const agentError = outcome.error instanceof TrainError ? outcome.error : agentFailed(outcome.error)
    // After a failed call, an agent mostly throws its client's description of that failure.
    const error = agentError.code === 'AGENT_FAILED' ? (failure ?? environmentFailure ?? agentError) : agentError
    const limited = limitOf(error)
    if (limited) return limited
    // Clients refuse a message that was cut: `openai` throws a LengthFinishReasonError, others fail to read its arguments.
    const cut = error.code === 'AGENT_FAILED' && latestTurn(trajectories)?.finishReason.unified === 'length'
    return { stopReason: cut ? 'truncated' : 'failed', error }
  }
  const { answer } = outcome
  if (!trajectories.some(({ turns }) => turns.length > 0)) {
    const error = failure ?? environmentFailure
    if (error) return { stopReason: 'failed', error }
    return { stopReason: 'no-model-call', error: noModelCall() }
  }
  if (answer.stopped) return { stopReason: answer.stopped }
  return { stopReason: answerTurn(answer.answer, trajectories)?.finishReason.unified === 'length' ? 'truncated' : 'completed' }
}

/** AGENT_LIMIT names its stop reason in `details`; a full context and a cancellation end an episode like a limit. */
function limitOf(error: TrainError | null): StopDecision | null {
  if (error?.code === 'ROLLOUT_CANCELLED') return { stopReason: 'cancelled', error }
  if (error?.code === 'POLICY_CONTEXT_OVERFLOW') return { stopReason: 'context-overflow', error }
  if (error?.code !== 'AGENT_LIMIT') return null
  const named = StopReason.safeParse(error.details?.['stopReason'])
  return { stopReason: named.success ? named.data : 'turn-limit', error }
}

/** The turn an answer was taken from: the latest one that says it, else the latest. */
function answerTurn(answer: string | null, trajectories: readonly Trajectory[]): Turn | undefined {
  const turns = inOrder(trajectories)
  const text = answer?.trim()
  return (text ? turns.findLast(({ message }) => message.content?.includes(text)) : undefined) ?? turns.at(-1)
}

const latestTurn = (trajectories: readonly Trajectory[]): Turn | undefined => inOrder(trajectories).at(-1)

const inOrder = (trajectories: readonly Trajectory[]): Turn[] =>
  trajectories.flatMap((trajectory) => trajectory.turns).sort((a, b) => a.timing.endedAt - b.timing.endedAt)

function agentFailed(error: unknown): TrainError {
  const message = errorMessage(error)
  return new TrainError(
    'AGENT_FAILED',
    `The agent threw: ${message.replace(/\.$/, '')}. Read the cause; the episode keeps the turns so far.`,
    {
      cause: error,
    },
  )
}

function noModelCall(): TrainError {
  return new TrainError(
    'AGENT_NO_MODEL_CALL',
    'The agent answered without calling the policy. Give it the base URL of its context; without a call there is nothing to train.',
  )
}
