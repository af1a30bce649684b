import { DrivenSettings } from '@aworld-train/training'
import { z } from 'zod'

/** Our side of a run with AReaL: the block `aworldTrain` of a configuration. */
export const ArealSettings = DrivenSettings.extend({
  /** Which row of a rollout with several conversations is trained: AReaL's groups have one each. */
  rows: DrivenSettings.shape.rows.unwrap().default('last'),
  /** Longest prompt in tokens; `null`: what `gconfig.max_new_tokens` leaves of the model's context. */
  maxPromptTokens: z.int().min(1).nullable().default(null),
  /** Newest checkpoints that stay, each a folder of its own; AReaL itself writes one over the other. `null`: all. */
  keepCheckpoints: z.int().min(1).nullable().default(2),
})
export type ArealSettings = z.infer<typeof ArealSettings>
