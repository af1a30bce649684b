import type { TrainerCommand, TrainerStart } from '@aworld-train/core'
import { bridgeEnvironment } from '../../shared/process/bridge-environment.ts'
import { moduleCommand } from '../../shared/training/write-plan-files.ts'

/** Prefixes of variables that AReaL reads beside those of torch. */
const prefixes = ['AREAL_', 'RAY_']

export function arealCommand(_: unknown, start: TrainerStart): TrainerCommand {
  const { bridge, inherited } = start
  return {
    command: moduleCommand('areal', start),
    environment: { PYTHONWARNINGS: 'ignore', ...bridgeEnvironment(bridge, { inherited, prefixes, ownVariables: {} }) },
    folders: [],
    temporary: null,
  }
}
