import type { TrainerCommand, TrainerStart } from '@aworld-train/core'
import { bridgeEnvironment } from '@aworld-train/python-bridge'
import { moduleCommand } from '@aworld-train/run'

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
