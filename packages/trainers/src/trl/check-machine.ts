import type { MachineCheck, MachineOptions } from '@aworld-train/core'
import { firstGpu } from '../hugging-face/first-gpu.ts'
import type { GrpoPlan } from '../hugging-face/plan-grpo.ts'
import { probeGpuDriver } from '../shared/environment/probe-gpu-driver.ts'
import { type CheckMachineOptions, checkTorch } from '../shared/training/check-torch.ts'
import { trlPython } from './python/trl-python.ts'

/** Checks that there is a GPU if vLLM samples, and a torch that uses it, and that TRL and the bridge can be imported. */
export const checkMachine = (options: CheckMachineOptions): AsyncGenerator<MachineCheck> =>
  checkTorch({
    ...options,
    framework: trlPython,
    title: 'TRL',
    least: { configuration: {} },
    lacks: async () => (options.plan === null ? [] : await lacks(options.plan as GrpoPlan, options)),
    env: { ...options.env, CUDA_VISIBLE_DEVICES: firstGpu(options.env) },
  })

/** Requires a GPU if vLLM samples, because TRL pushes weights to vLLM by NCCL. */
export async function lacks(
  { fields }: Pick<GrpoPlan, 'fields'>,
  { env, signal }: Pick<MachineOptions, 'env' | 'signal'>,
): Promise<string[]> {
  if (fields['use_vllm'] !== true) return []
  const driver = await probeGpuDriver({ env, signal })
  if (driver && driver.gpus.length > 0) return []
  return [
    'use_vllm is true, and TRL pushes weights to vLLM from a GPU, which this machine has not; leave use_vllm out, so that the model that is trained samples.',
  ]
}
