import type { MachineCheck, MachineOptions } from '@aworld-train/core'
import { firstGpu } from '../hugging-face/first-gpu.ts'
import { checkTorch } from '../shared/training/check-torch.ts'
import { swiftFramework } from './config/swift-config.ts'
import { swiftPython } from './python/swift-python.ts'

/** Checks that torch can be imported, and then swift and the bridge. */
export const checkMachine = ({ python, env, signal }: MachineOptions & { readonly python: string | null }): AsyncGenerator<MachineCheck> =>
  checkTorch({
    framework: swiftPython,
    title: 'ms-swift',
    ask: (interpreter) => swiftFramework.ask({ configuration: {}, section: null, model: null }, { python: interpreter, signal }),
    python,
    env: { ...env, CUDA_VISIBLE_DEVICES: firstGpu(env) },
    signal,
  })
