import { ModuleSettings } from '@aworld-train/run'

/** Our side of a run with ms-swift: the block `aworldTrain` of a configuration. */
export const SwiftSettings = ModuleSettings
export type SwiftSettings = ModuleSettings
