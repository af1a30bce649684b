import type { AttemptOutcome } from '@aworld-train/core'

/** The part of an outcome that agents and tools fill, for an attempt whose agent's side recorded nothing. */
export function emptyOutcome(): Omit<AttemptOutcome, 'end' | 'aborted' | 'timing'> {
  return { environmentFailure: null, invocations: [], toolCalls: [], toolErrors: 0, functionCalls: 0, problems: [] }
}
