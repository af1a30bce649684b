import { join } from 'node:path'
import type { DrivenCommand, DrivenStart } from '@aworld-train/core'
import { bridgeEnvironment } from '@aworld-train/python-bridge'
import { firstGpu, swiftVariables } from './swift-variables.ts'
import { runFiles } from './write-run-files.ts'

/** Prefixes of variables that ms-swift, its hub client, accelerate and transformers read beside those of torch. */
const prefixes = ['ACCELERATE_', 'TRL_', 'SWIFT_', 'MODELSCOPE_', 'SWANLAB_']

export function swiftCommand(_: unknown, { python, bridge, inherited }: DrivenStart): DrivenCommand {
  return {
    command: [python, '-m', 'aworld_train_bridge.swift', join(bridge.path, runFiles.plan), '--metrics', bridge.metricsFile],
    environment: {
      ...bridgeEnvironment(bridge, { inherited, prefixes, ownVariables: {} }),
      CUDA_VISIBLE_DEVICES: firstGpu(inherited),
      ...swiftVariables,
    },
    folders: [],
    temporary: null,
  }
}
