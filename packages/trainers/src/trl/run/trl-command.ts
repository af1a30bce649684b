import type { TrainerCommand, TrainerStart } from '@aworld-train/core'
import { firstGpu } from '../../hugging-face/first-gpu.ts'
import { bridgeEnvironment } from '../../shared/process/bridge-environment.ts'
import { moduleCommand } from '../../shared/training/write-plan-files.ts'

/** Prefixes of variables that TRL, accelerate and transformers read beside those of torch. */
const prefixes = ['ACCELERATE_', 'TRL_', 'TRACKIO_']

export function trlCommand(_: unknown, start: TrainerStart): TrainerCommand {
  const { bridge, inherited } = start
  return {
    command: moduleCommand('trl', start),
    environment: {
      ...bridgeEnvironment(bridge, { inherited, prefixes, ownVariables: {} }),
      CUDA_VISIBLE_DEVICES: firstGpu(inherited),
      TRL_EXPERIMENTAL_SILENCE: '1',
      TOKENIZERS_PARALLELISM: 'false',
    },
    folders: [],
    temporary: null,
  }
}
