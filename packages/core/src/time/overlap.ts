import type { Timing } from '../protocol/turn.ts'

/** Whether there is a time that belongs to both. What ends when the other begins does not overlap. */
export const overlap = (a: Timing, b: Timing): boolean => a.startedAt < b.endedAt && b.startedAt < a.endedAt
