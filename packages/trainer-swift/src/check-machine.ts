import type { DrivenCheck, DrivenPlan, MachineOptions } from '@aworld-train/core'
import { inspectPython } from '@aworld-train/python-bridge'
import { toProblem } from '@aworld-train/run'
import { askSwift } from './config/ask-swift.ts'
import { swiftPython } from './python/swift-python.ts'
import { firstGpu } from './run/swift-variables.ts'

/** What ms-swift needs of a machine: a torch that can be imported; then whether swift and the bridge can be. */
export async function* checkMachine({
  python,
  env,
  signal,
}: MachineOptions & { readonly plan: DrivenPlan | null; readonly python: string | null }): AsyncGenerator<DrivenCheck> {
  if (python === null) return
  try {
    const { torch } = await inspectPython(python, swiftPython, {
      env: { ...env, CUDA_VISIBLE_DEVICES: firstGpu(env) },
      torch: true,
      signal,
    })
    const devices = torch?.devices.map(({ name }) => name).join(', ')
    if (torch?.error) yield { name: 'torch', level: 'problem', message: `torch cannot be imported: ${torch.error}` }
    else yield { name: 'torch', level: 'ok', message: devices ? `trains on ${devices}` : "trains on this machine's processor, in float32" }
    const { version, problems } = await askSwift({ configuration: {}, model: null }, { python, signal })
    if (problems.length > 0) yield { name: 'imports', level: 'problem', message: problems.join('\n') }
    else yield { name: 'imports', level: 'ok', message: `ms-swift ${version} and the bridge` }
  } catch (error) {
    yield toProblem('swift', error, signal)
  }
}
