import {
  type AgentEnd,
  answering,
  answeringTrajectory,
  type ErrorRecord,
  type InvocationRecord,
  StopReason,
  TrainError,
  type Trajectory,
  type Turn,
  toTrainError,
} from '@aworld-train/core'

export interface StopInput {
  readonly end: AgentEnd
  /** Why the agent was told to stop before its end; `null` when it was not. */
  readonly aborted: ErrorRecord | null
  /** The first limit or failure that the gateway met. */
  readonly policyFailure: Error | null
  /** The first lost tool server or refused lease. */
  readonly environmentFailure: ErrorRecord | null
  readonly invocations: readonly InvocationRecord[]
  readonly trajectories: readonly Trajectory[]
  /** Whether an answer without a model call is a failure. */
  readonly requiresModelCall: boolean
}

export interface StopDecision {
  readonly stopReason: StopReason
  readonly error: ErrorRecord | undefined
}

/** Decides why an episode ended. A limit outweighs an answer given after it; a failure that the agent overcame does not. */
export function decideStop({
  end,
  aborted,
  policyFailure,
  environmentFailure,
  invocations,
  trajectories,
  requiresModelCall,
}: StopInput): StopDecision {
  const failure = policyFailure === null ? null : toTrainError(policyFailure, 'POLICY_UNAVAILABLE').toRecord()
  const limit = limitOf(aborted) ?? limitOf(failure)
  if (limit) return limit
  // An abort without a limit is a failure of what surrounds the rollout.
  if (aborted) return { stopReason: 'failed', error: aborted }
  if (end.kind === 'abandoned')
    return { stopReason: 'failed', error: new TrainError('AGENT_FAILED', 'The agent did not return.').toRecord() }
  if (end.kind === 'threw') {
    // After a failed call, an agent mostly throws its client's description of that failure.
    const error = end.error.code === 'AGENT_FAILED' ? (failure ?? environmentFailure ?? end.error) : end.error
    const limited = limitOf(error)
    if (limited) return limited
    // Clients refuse a message that was cut: `openai` throws a LengthFinishReasonError, others fail to read its arguments.
    const withAnswer = answeredIds(invocations)
    const cut = error.code === 'AGENT_FAILED' && trajectories.some(({ id, turns }) => !withAnswer.has(id) && isCut(lastOf(turns)))
    return { stopReason: cut ? 'truncated' : 'failed', error }
  }
  if (!trajectories.some(({ turns }) => turns.length > 0)) {
    // An agent with a client of its own may have overcome a lost tool server, as one whose calls are seen; a failed call was its only one.
    const error = failure ?? (requiresModelCall ? environmentFailure : null)
    if (error) return { stopReason: 'failed', error }
    if (requiresModelCall) return { stopReason: 'no-model-call', error: noModelCall().toRecord() }
  }
  if (end.stopped) return { stopReason: end.stopped, error: undefined }
  return { stopReason: isAnswerCut(end.answer, trajectories) ? 'truncated' : 'completed', error: undefined }
}

/** Ids of the invocations that came to an answer. */
export const answeredIds = (invocations: readonly InvocationRecord[]): ReadonlySet<string> =>
  new Set(invocations.flatMap(({ id, answered }) => (answered ? [id] : [])))

/** AGENT_LIMIT names its stop reason in `details`; a full context and a cancellation end an episode like a limit. */
function limitOf(error: ErrorRecord | null): StopDecision | null {
  if (error?.code === 'ROLLOUT_CANCELLED') return { stopReason: 'cancelled', error }
  if (error?.code === 'POLICY_CONTEXT_OVERFLOW') return { stopReason: 'context-overflow', error }
  if (error?.code !== 'AGENT_LIMIT') return null
  const named = StopReason.safeParse(error.details?.['stopReason'])
  return { stopReason: named.success ? named.data : 'turn-limit', error }
}

/**
 * Whether the answer was cut: the latest turn that has it, of the invocation that answered, else the latest turn of any invocation whose answer
 * it can be.
 */
function isAnswerCut(answer: string | null, trajectories: readonly Trajectory[]): boolean {
  const text = answer?.trim()
  const turns = inOrder(answeringTrajectory(trajectories, answer)?.turns ?? [])
  const turn = text ? turns.findLast(({ message }) => message.content?.includes(text)) : undefined
  return turn ? isCut(turn) : answering(trajectories).some((trajectory) => isCut(lastOf(trajectory.turns)))
}

const isCut = (turn: Turn | undefined): boolean => turn?.finishReason.unified === 'length'
const inOrder = (turns: readonly Turn[]): Turn[] => turns.toSorted((a, b) => a.timing.endedAt - b.timing.endedAt)
const lastOf = (turns: readonly Turn[]): Turn | undefined => inOrder(turns).at(-1)

function noModelCall(): TrainError {
  return new TrainError(
    'AGENT_NO_MODEL_CALL',
    'The agent answered without calling the policy. Give it the base URL of its context; without a call there is nothing to train.',
  )
}
