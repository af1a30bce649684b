export { ModuleSettings as SwiftSettings } from '../shared/training/module-config.ts'
export { swiftTrainer } from './swift-trainer.ts'
