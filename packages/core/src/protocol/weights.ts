import { z } from 'zod'
import { ErrorRecord } from './episode.ts'

/** Asks a gateway to load new weights into the servers of a model, or to count their present ones as a new version. */
export const WeightPublication = z.strictObject({
  /** Higher than every version before it. Without `directory` it may repeat the last one. */
  version: z.int().min(0),
  /** Folder that the servers read, by its path on their machines. Absent if they have the weights already. */
  directory: z.string().min(1).optional(),
  /** Name of the LoRA adapter in the folder. Default: the base weights. */
  policy: z.string().min(1).max(512).optional(),
  /**
   * Treatment of calls in flight. `drain` (default): they end first. `keep`: they wait and continue with the new weights. `abort`: they are
   * cut off.
   */
  inFlight: z.enum(['drain', 'keep', 'abort']).optional(),
})
export type WeightPublication = z.infer<typeof WeightPublication>

/** Outcome of a publication for each server. */
export const WeightReport = z.strictObject({
  version: z.int().min(0),
  policy: z.string().nullable(),
  durationMs: z.number().min(0),
  replicas: z.array(
    z.strictObject({
      server: z.string(),
      /** Largest |sampled - recomputed| logprob; `null` if nothing was compared. */
      difference: z.number().nullable(),
      /** Reason why the server takes no calls; `null` if it has the weights. */
      error: ErrorRecord.nullable(),
    }),
  ),
})
export type WeightReport = z.infer<typeof WeightReport>
