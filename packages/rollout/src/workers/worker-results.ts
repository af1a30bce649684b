import { type AttemptOutcome, errorMessage, TrainError, WorkerResult } from '@aworld-train/core'
import { ZodError } from 'zod'
import { emptyOutcome } from '../empty-outcome.ts'

/** The outcome of an attempt that ended before its agent ran. */
export function failedOutcome(error: TrainError): AttemptOutcome {
  const now = Date.now()
  return {
    end: { kind: 'threw', error: error.toRecord() },
    aborted: null,
    ...emptyOutcome(),
    timing: { startedAt: now, endedAt: now },
  }
}

/**
 * Returns the result, or a failure in its place. A result that is too large or cannot be read would end the connection and
 * everything on it, again and again.
 */
export function sendable(result: WorkerResult, maxBytes = Number.POSITIVE_INFINITY): WorkerResult {
  try {
    const text = JSON.stringify(result)
    const bytes = Buffer.byteLength(text)
    if (bytes > maxBytes) {
      const message = `The result of rollout "${result.key}" has ${bytes} bytes, and its coordinator takes ${maxBytes}; make tools answer less, or raise maxFrameBytes.`
      return failedResult(result, new TrainError('WORKER_RESULT_TOO_LARGE', message))
    }
    WorkerResult.parse(JSON.parse(text))
    return result
  } catch (cause) {
    const [issue] = cause instanceof ZodError ? cause.issues : []
    const problem = issue ? `${issue.path.join('.')}: ${issue.message}` : errorMessage(cause)
    const message = `The result of rollout "${result.key}" cannot be sent to its coordinator: ${problem}. Correct what the agent or its functions return.`
    return failedResult(result, new TrainError('AGENT_FAILED', message, { cause }))
  }
}

function failedResult(result: WorkerResult, error: TrainError): WorkerResult {
  return { ...result, outcome: { ...failedOutcome(error), timing: result.outcome.timing } }
}
