import { createGrpoTrainer } from '../hugging-face/grpo-trainer.ts'
import { checkMachine, lacks } from './check-machine.ts'
import { trlFramework } from './config/trl-config.ts'
import { trlPython } from './python/trl-python.ts'
import { trlCommand } from './run/trl-command.ts'
import { trlFacts } from './trl-facts.ts'

/** TRL: its configuration is GRPOConfig's fields, and its rollouts are sampled by the model that it trains, or by vLLM. */
export const trlTrainer = createGrpoTrainer(trlFramework, {
  python: trlPython,
  lacks,
  command: trlCommand,
  milestones: [/use_cpu|Loading weights/],
  checks: checkMachine,
  facts: trlFacts,
})
