import { z } from 'zod'
import { ErrorRecord } from './episode.ts'

/** Asks a gateway to bring new weights to the servers of a model, or to take those that are there already as a new version. */
export const WeightPublication = z.strictObject({
  /** Above every version before it; without `directory` it may be the last one again. */
  version: z.int().min(0),
  /** Folder that the servers read, under its path on their machines. Absent: they have the weights already. */
  directory: z.string().min(1).optional(),
  /** The folder is a LoRA adapter of this name; the base weights where absent. */
  policy: z.string().min(1).max(512).optional(),
  /** `drain` (default): calls in flight end first. `keep`: they wait and go on with the new weights. `abort`: they are cut. */
  inFlight: z.enum(['drain', 'keep', 'abort']).optional(),
})
export type WeightPublication = z.infer<typeof WeightPublication>

/** What came of a publication, server by server. */
export const WeightReport = z.strictObject({
  version: z.int().min(0),
  policy: z.string().nullable(),
  durationMs: z.number().min(0),
  replicas: z.array(
    z.strictObject({
      server: z.string(),
      /** Largest |sampled - recomputed| logprob; `null` where nothing was compared. */
      difference: z.number().nullable(),
      /** Why the server takes no calls now; `null` where it has the weights. */
      error: ErrorRecord.nullable(),
    }),
  ),
})
export type WeightReport = z.infer<typeof WeightReport>
