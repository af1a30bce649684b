export type { Sandbox } from '@aworld-train/core'
export { openSimulatedSandbox } from './simulated/simulated-sandbox.ts'
