export { SwiftSettings } from './config/swift-settings.ts'
export { swiftTrainer } from './swift-trainer.ts'
