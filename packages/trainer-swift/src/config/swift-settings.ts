import { DrivenSettings } from '@aworld-train/training'
import { z } from 'zod'

/** Our side of a run with ms-swift: the block `aworldTrain` of a configuration. */
export const SwiftSettings = DrivenSettings.extend({
  /** Which row of a rollout with several conversations is trained: ms-swift takes one. */
  rows: DrivenSettings.shape.rows.unwrap().default('last'),
  /** Longest prompt in tokens; `null`: what `max_completion_length` leaves of the model's context. */
  maxPromptTokens: z.int().min(1).nullable().default(null),
})
export type SwiftSettings = z.infer<typeof SwiftSettings>
