import { ModuleSettings } from '../../shared/training/module-config.ts'

/** Our side of a run with ms-swift. */
export const SwiftSettings = ModuleSettings
export type SwiftSettings = ModuleSettings
