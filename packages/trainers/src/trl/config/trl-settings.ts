import { ModuleSettings } from '../../shared/training/module-config.ts'

/** Our side of a run with TRL. */
export const TrlSettings = ModuleSettings
export type TrlSettings = ModuleSettings
