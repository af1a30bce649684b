export type { SwiftConfig, SwiftPlan } from './config/swift-config.ts'
export { SwiftSettings } from './config/swift-settings.ts'
export { swiftTrainer } from './swift-trainer.ts'
