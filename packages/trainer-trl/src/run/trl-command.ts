import { join } from 'node:path'
import type { DrivenCommand, DrivenStart } from '@aworld-train/core'
import { bridgeEnvironment } from '@aworld-train/python-bridge'
import { runFiles } from './write-run-files.ts'

/** Prefixes of variables that TRL, accelerate and transformers read beside those of torch. */
const prefixes = ['ACCELERATE_', 'TRL_', 'TRACKIO_']

/** The one GPU that TRL sees, as `CUDA_VISIBLE_DEVICES` names it: transformers would spread one process over all, which GRPOTrainer refuses. Empty for none. */
export const firstGpu = (env: Readonly<Record<string, string | undefined>>): string =>
  (env['CUDA_VISIBLE_DEVICES'] ?? '0').split(',')[0]!.trim()

export function trlCommand(_: unknown, { python, bridge, inherited }: DrivenStart): DrivenCommand {
  return {
    command: [python, '-m', 'aworld_train_bridge.trl', join(bridge.path, runFiles.plan), '--metrics', bridge.metricsFile],
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
