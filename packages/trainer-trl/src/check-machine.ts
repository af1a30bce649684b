import type { DrivenCheck, DrivenPlan, MachineOptions } from '@aworld-train/core'
import { inspectPython, probeGpuDriver } from '@aworld-train/python-bridge'
import { toProblem } from '@aworld-train/run'
import { askTrl } from './config/ask-trl.ts'
import type { TrlPlan } from './config/trl-config.ts'
import { trlPython } from './python/trl-python.ts'
import { firstGpu } from './run/trl-command.ts'

/** What TRL needs of a machine: a GPU where vLLM samples, and a torch that uses it; then whether TRL and the bridge can be imported. */
export async function* checkMachine({
  plan,
  python,
  env,
  signal,
}: MachineOptions & { readonly plan: DrivenPlan | null; readonly python: string | null }): AsyncGenerator<DrivenCheck> {
  if (python === null) return
  try {
    const { torch } = await inspectPython(python, trlPython, { env: { ...env, CUDA_VISIBLE_DEVICES: firstGpu(env) }, torch: true, signal })
    const devices = torch?.devices.map(({ name }) => name).join(', ')
    if (torch?.error) yield { name: 'torch', level: 'problem', message: `torch cannot be imported: ${torch.error}` }
    else yield { name: 'torch', level: 'ok', message: devices ? `trains on ${devices}` : "trains on this machine's processor, in float32" }
    for (const message of plan === null ? [] : await lacks(plan as TrlPlan, { env, signal }))
      yield { name: 'machine', level: 'problem', message }
    const { version, problems } = await askTrl({ configuration: {}, lora: null }, { python, signal })
    if (problems.length > 0) yield { name: 'imports', level: 'problem', message: problems.join('\n') }
    else yield { name: 'imports', level: 'ok', message: `TRL ${version} and the bridge` }
  } catch (error) {
    yield toProblem('trl', error, signal)
  }
}

/** TRL pushes weights to vLLM by NCCL, which needs a GPU. */
export async function lacks(
  { fields }: Pick<TrlPlan, 'fields'>,
  { env, signal }: Pick<MachineOptions, 'env' | 'signal'>,
): Promise<string[]> {
  if (fields['use_vllm'] !== true) return []
  const driver = await probeGpuDriver({ env, signal })
  if (driver && driver.gpus.length > 0) return []
  return [
    'use_vllm is true, and TRL pushes weights to vLLM from a GPU, which this machine has not; leave use_vllm out, so that the model that is trained samples.',
  ]
}
