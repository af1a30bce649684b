import { type AttemptName, errorMessage, type StopReason, TrainError } from '@aworld-train/core'

/** The error for a spent budget; `details.stopReason` names the budget. */
function limitReached(stopReason: StopReason, message: string): TrainError {
  return new TrainError('AGENT_LIMIT', message, { details: { stopReason } })
}

export function timeLimit(rollout: string, timeoutMs: number): TrainError {
  return limitReached(
    'time-limit',
    `Rollout "${rollout}" ran for its ${timeoutMs} ms; raise limits.timeoutMs, or make the agent stop earlier.`,
  )
}

export function toolCallLimit(rollout: string, maxToolCalls: number): TrainError {
  return limitReached(
    'tool-call-limit',
    `Rollout "${rollout}" has made its ${maxToolCalls} tool calls; raise limits.maxToolCalls, or make the agent stop earlier.`,
  )
}

export function cancelled(rollout: string, cause?: unknown): TrainError {
  const options = cause === undefined ? {} : { cause }
  return new TrainError('ROLLOUT_CANCELLED', `Rollout "${rollout}" was cancelled; run the same command again and it runs again.`, options)
}

/** Reason of an attempt's signal once the rollout has its result. Late calls are refused with it. */
export function rolloutEnded(rollout: string): TrainError {
  return new TrainError('AGENT_LIMIT', `Rollout "${rollout}" has ended; make its calls before the agent returns.`)
}

/** The attempt's worker is gone, and the rollout runs again elsewhere. */
export function attemptLost({ key, attempt }: AttemptName, worker: string): TrainError {
  return new TrainError('WORKER_LOST', `Attempt ${attempt} of rollout "${key}" was at worker "${worker}", which is gone.`)
}

/** The rollout has lost, one after the other, as many workers of its own as it may. */
export function workerLost(rollout: string, { losses, worker }: { readonly losses: number; readonly worker: string }): TrainError {
  const message = `Rollout "${rollout}" was alone on ${losses} workers that ended while no other one did, the last of them worker "${worker}"; look in its agent and tools for what ends their process, such as an exit or too little memory, then run it again.`
  return new TrainError('WORKER_LOST', message)
}

/** The error for whatever an agent threw. */
export function agentFailure(thrown: unknown): TrainError {
  if (thrown instanceof TrainError) return thrown
  const message = errorMessage(thrown).replace(/\.$/, '')
  return new TrainError('AGENT_FAILED', `The agent threw: ${message}. Read the cause; the episode keeps the turns so far.`, {
    cause: thrown,
  })
}

/** The error for a rejection or an exception that an agent or a tool left unhandled. */
export function strayFailure(thrown: unknown): TrainError {
  if (thrown instanceof TrainError) return thrown
  const message = errorMessage(thrown).replace(/\.$/, '')
  return new TrainError(
    'AGENT_FAILED',
    `The agent, or a tool of it, left an error that nobody handled: ${message}. Await what rejects, and catch what a timer throws.`,
    {
      cause: thrown,
    },
  )
}
