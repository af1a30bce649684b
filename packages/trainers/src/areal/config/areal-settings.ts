import { z } from 'zod'
import { ModuleSettings } from '../../shared/training/module-config.ts'

/** Our side of a run with AReaL. */
export const ArealSettings = ModuleSettings.extend({
  keepCheckpoints: z
    .int()
    .min(1)
    .nullable()
    .default(2)
    .describe(
      'Newest checkpoints that stay, each with the state of the optimizer. `null` keeps all; AReaL by itself writes one over the other.',
    ),
})
export type ArealSettings = z.infer<typeof ArealSettings>
