import { join } from 'node:path'
import type { DrivenCommand, DrivenStart } from '@aworld-train/core'
import { bridgeEnvironment } from '@aworld-train/python-bridge'
import { runFiles } from './write-run-files.ts'

/** Prefixes of variables that AReaL reads beside those of torch. */
const prefixes = ['AREAL_', 'RAY_']

export function arealCommand(_: unknown, { python, bridge, inherited }: DrivenStart): DrivenCommand {
  return {
    command: [python, '-W', 'ignore', '-m', 'aworld_train_bridge.areal', join(bridge.path, runFiles.plan), '--metrics', bridge.metricsFile],
    environment: bridgeEnvironment(bridge, { inherited, prefixes, ownVariables: {} }),
    folders: [],
    temporary: null,
  }
}
