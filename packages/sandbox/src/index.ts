export type { Sandbox } from '@aworld-train/core'
