import { ModuleSettings } from '@aworld-train/run'

/** Our side of a run with TRL. */
export const TrlSettings = ModuleSettings
export type TrlSettings = ModuleSettings
