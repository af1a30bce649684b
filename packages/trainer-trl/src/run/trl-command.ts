import { join } from 'node:path'
import type { DrivenCommand, DrivenStart } from '@aworld-train/core'
import { bridgeEnvironment } from '@aworld-train/python-bridge'
import { runFiles } from './write-run-files.ts'

/** Prefixes of variables that TRL, accelerate and transformers read beside those of torch. */
const prefixes = ['ACCELERATE_', 'TRL_', 'TRACKIO_']

export function trlCommand(_: unknown, { python, bridge, inherited }: DrivenStart): DrivenCommand {
  return {
    command: [python, '-m', 'aworld_train_bridge.trl', join(bridge.path, runFiles.plan), '--metrics', bridge.metricsFile],
    environment: {
      ...bridgeEnvironment(bridge, { inherited, prefixes, ownVariables: {} }),
      TRL_EXPERIMENTAL_SILENCE: '1',
      TOKENIZERS_PARALLELISM: 'false',
    },
    folders: [],
    temporary: null,
  }
}
