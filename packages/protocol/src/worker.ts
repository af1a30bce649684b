import { z } from 'zod'
import { AttemptAssignment, AttemptOutcome } from './attempt.ts'

/** Asks a worker to run the agent of an attempt. */
export const WorkerAssign = AttemptAssignment.extend({ type: z.literal('assign') })
export type WorkerAssign = z.infer<typeof WorkerAssign>

/** How the agent's side of an attempt ended. A worker repeats it until it is told that the result is kept. */
export const WorkerResult = z.strictObject({
  type: z.literal('result'),
  key: z.string().min(1),
  attempt: z.int().min(0),
  outcome: AttemptOutcome,
})
export type WorkerResult = z.infer<typeof WorkerResult>
