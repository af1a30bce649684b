import type { TrainerCommand, TrainerStart } from '@aworld-train/core'
import { bridgeEnvironment } from '../../shared/process/bridge-environment.ts'
import { moduleCommand } from '../../shared/training/write-plan-files.ts'

/** Prefixes of variables that TRL, accelerate and transformers read beside those of torch. */
const prefixes = ['ACCELERATE_', 'TRL_', 'TRACKIO_']

/**
 * The only GPU that TRL sees, as `CUDA_VISIBLE_DEVICES` names it. Transformers would spread one process over all, which GRPOTrainer
 * refuses. Empty for none.
 */
export const firstGpu = (env: Readonly<Record<string, string | undefined>>): string =>
  (env['CUDA_VISIBLE_DEVICES'] ?? '0').split(',')[0]!.trim()

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
