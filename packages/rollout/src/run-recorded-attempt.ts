import {
  type AttemptExecutor,
  defaultAttemptMs,
  type PolicyGateway,
  type RolloutLimits,
  type RolloutWriter,
  type TrainError,
  toTrainError,
} from '@aworld-train/core'
import type { Span } from '@opentelemetry/api'
import { endAttemptSpan, startAttemptSpan } from './observe/rollout-spans.ts'
import type { CurrentAttempt } from './rollout-table.ts'
import { type AttemptOptions, type AttemptResult, runAttempt } from './run-attempt.ts'

export interface RecordedAttemptOptions
  extends Pick<AttemptOptions, 'request' | 'agents' | 'onOutcome' | 'onWarning' | 'requiresModelCall'> {
  readonly attempt: CurrentAttempt
  readonly rolloutSpan: Span
  /** Limits for a request that sets none of its own. */
  readonly limits: RolloutLimits
  readonly gateway: PolicyGateway
  readonly store: RolloutWriter
  readonly executor: AttemptExecutor
  /** Called before a failure of the store is thrown. */
  readonly onResult: (result: AttemptResult) => void
}

/**
 * Runs an attempt within its span. Each turn is on disk before the agent has it. Rejects with the store's error, and as `runAttempt` does.
 */
export async function runRecordedAttempt(options: RecordedAttemptOptions): Promise<AttemptResult> {
  const { request, attempt, rolloutSpan, agents, gateway, store, executor, onOutcome, onResult, onWarning, requiresModelCall } = options
  const { number, stop, lost } = attempt
  const span = startAttemptSpan({ rollout: rolloutSpan, key: request.key, attempt: number, agents })
  const limits = { ...options.limits, ...definedOnly(request.limits) }
  let storeFailure: TrainError | null = null
  const result = await runAttempt({
    request,
    attempt: number,
    agents,
    gateway,
    executor,
    span,
    onOutcome,
    onWarning,
    requiresModelCall,
    limits: { ...limits, timeoutMs: limits.timeoutMs ?? defaultAttemptMs },
    signal: stop.signal,
    lost: lost.signal,
    async onTurn(trajectory, turn) {
      try {
        await store.appendTurn(request.key, number, trajectory, turn)
      } catch (error) {
        storeFailure ??= toTrainError(error, 'STORE_FAILED')
        throw storeFailure
      }
    },
  }).catch((error: unknown) => {
    span.end()
    throw error
  })
  endAttemptSpan(span, result)
  onResult(result)
  if (storeFailure) throw storeFailure
  return result
}

/** Drops undefined members, so that an undefined limit of a request leaves the runner's own in force. */
function definedOnly<T extends object>(value: T): Partial<T> {
  return Object.fromEntries(Object.entries(value).filter(([, entry]) => entry !== undefined)) as Partial<T>
}
