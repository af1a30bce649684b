import { ModuleSettings } from '@aworld-train/run'

/** Our side of a run with ms-swift. */
export const SwiftSettings = ModuleSettings
export type SwiftSettings = ModuleSettings
