import type { TrainerCommand, TrainerStart } from '@aworld-train/core'
import { firstGpu } from '../../hugging-face/first-gpu.ts'
import { bridgeEnvironment } from '../../shared/process/bridge-environment.ts'
import { moduleCommand } from '../../shared/training/write-plan-files.ts'
import { swiftVariables } from './swift-variables.ts'

/** Prefixes of variables that ms-swift, its hub client, accelerate and transformers read beside those of torch. */
const prefixes = ['ACCELERATE_', 'TRL_', 'SWIFT_', 'MODELSCOPE_', 'SWANLAB_']

export function swiftCommand(_: unknown, start: TrainerStart): TrainerCommand {
  const { bridge, inherited } = start
  return {
    command: moduleCommand('swift', start),
    environment: {
      ...bridgeEnvironment(bridge, { inherited, prefixes, ownVariables: {} }),
      CUDA_VISIBLE_DEVICES: firstGpu(inherited),
      ...swiftVariables,
    },
    folders: [],
    temporary: null,
  }
}
