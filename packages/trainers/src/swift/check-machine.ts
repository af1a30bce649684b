import type { MachineCheck } from '@aworld-train/core'
import { firstGpu } from '../hugging-face/first-gpu.ts'
import { type CheckMachineOptions, checkTorch } from '../shared/training/check-torch.ts'
import { swiftFramework } from './config/swift-config.ts'
import { swiftPython } from './python/swift-python.ts'

/** Checks that torch can be imported, and then swift and the bridge. */
export const checkMachine = (options: CheckMachineOptions): AsyncGenerator<MachineCheck> =>
  checkTorch({
    ...options,
    framework: swiftPython,
    title: 'ms-swift',
    least: { configuration: {} },
    variables: swiftFramework.variables?.(),
    env: { ...options.env, CUDA_VISIBLE_DEVICES: firstGpu(options.env) },
  })
