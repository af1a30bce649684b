import { createGrpoTrainer } from '../hugging-face/grpo-trainer.ts'
import { checkMachine } from './check-machine.ts'
import { swiftFramework } from './config/swift-config.ts'
import { swiftPython } from './python/swift-python.ts'
import { swiftCommand } from './run/swift-command.ts'
import { swiftFacts } from './swift-facts.ts'

/** ms-swift: its configuration is the arguments of `swift rlhf --rlhf_type grpo`, and the model that it trains samples. */
export const swiftTrainer = createGrpoTrainer(swiftFramework, {
  python: swiftPython,
  command: swiftCommand,
  milestones: [/Global seed set|Start time of running/],
  checks: checkMachine,
  facts: swiftFacts,
})
