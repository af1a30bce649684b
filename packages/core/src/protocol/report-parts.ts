import { z } from 'zod'

/** Rollouts that failed for one reason: their number, and the first of them. */
export const FailureCount = z.strictObject({
  code: z.string(),
  count: z.int().min(1),
  rollout: z.string(),
  message: z.string(),
  /** File and line of the user's code that threw it; `null` if none did. */
  source: z.string().nullable(),
})
export type FailureCount = z.infer<typeof FailureCount>

/** Calls of a run, as each side of a wire counted them. */
export const callCounts = {
  modelCalls: z.strictObject({ agent: z.int(), gateway: z.int(), engine: z.int() }),
  /**
   * `asked` counts the calls in answers of models, and `agent` those that agents made here. Of the latter, `environment` went to servers,
   * which counted `servers`, and `functions` were answered in the process. Calls that an agent of another framework runs by itself are only
   * in `asked`.
   */
  toolCalls: z.strictObject({
    asked: z.int(),
    agent: z.int(),
    environment: z.int(),
    functions: z.int(),
    servers: z.int().nullable(),
  }),
}

/** The weights that a report is about. `null` in a report that predates these fields. */
export const weights = {
  /** Folder or name of the model. For a training it is the one that it began with. */
  model: z.string().nullable().default(null),
  /** For a training, the checkpoint with its trained weights, below `path`; for an evaluation, the one that was loaded into the model. */
  checkpoint: z.string().nullable().default(null),
}
