import { ModuleSettings } from '@aworld-train/run'

/** Our side of a run with TRL: the block `aworldTrain` of a configuration. */
export const TrlSettings = ModuleSettings
export type TrlSettings = ModuleSettings
