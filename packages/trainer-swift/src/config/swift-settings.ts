import { TrainerSettings } from '@aworld-train/training'
import { z } from 'zod'

/** Our side of a run with ms-swift: the block `aworldTrain` of a configuration. */
export const SwiftSettings = TrainerSettings.extend({
  rows: TrainerSettings.shape.rows.unwrap().default('last'),
  maxPromptTokens: z
    .int()
    .min(1)
    .nullable()
    .default(null)
    .describe(
      'Longest prompt in tokens. A longer one gives no row. `null` allows what the longest response leaves of the context of the model.',
    ),
})
export type SwiftSettings = z.infer<typeof SwiftSettings>
