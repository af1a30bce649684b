import type { MachineCheck, MachineOptions, TrainerPlan } from '@aworld-train/core'
import { firstGpu } from '../hugging-face/first-gpu.ts'
import type { GrpoPlan } from '../hugging-face/plan-grpo.ts'
import { probeGpuDriver } from '../shared/environment/probe-gpu-driver.ts'
import { checkTorch } from '../shared/training/check-torch.ts'
import { trlFramework } from './config/trl-config.ts'
import { trlPython } from './python/trl-python.ts'

/** Checks that there is a GPU if vLLM samples, and a torch that uses it, and that TRL and the bridge can be imported. */
export const checkMachine = ({
  plan,
  python,
  env,
  signal,
}: MachineOptions & { readonly plan: TrainerPlan | null; readonly python: string | null }): AsyncGenerator<MachineCheck> =>
  checkTorch({
    framework: trlPython,
    title: 'TRL',
    ask: (interpreter) => trlFramework.ask({ configuration: {}, section: null, model: null }, { python: interpreter, signal }),
    lacks: async () => (plan === null ? [] : await lacks(plan as GrpoPlan, { env, signal })),
    python,
    env: { ...env, CUDA_VISIBLE_DEVICES: firstGpu(env) },
    signal,
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
