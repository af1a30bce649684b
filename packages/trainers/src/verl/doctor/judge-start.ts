import { errorMessage, type GpuDriver, type MachineOptions } from '@aworld-train/core'
import { valueAt } from '@aworld-train/training'
import { inspectPython } from '../../shared/environment/inspect-python.ts'
import { probeGpuDriver } from '../../shared/environment/probe-gpu-driver.ts'
import { clusterAddress } from '../config/own-ray.ts'
import type { VerlPlan } from '../config/verl-config.ts'
import { verlPython } from '../python/version-rules.ts'
import { judgeGpus, type MachineNeeds } from './judge-machine.ts'

/** Needs of a training on one machine. */
export function needsOf({ tree }: Pick<VerlPlan, 'tree'>): MachineNeeds {
  return { device: String(valueAt(tree, 'trainer.device') ?? 'cuda'), gpus: Number(valueAt(tree, 'trainer.n_gpus_per_node') ?? 1) }
}

/**
 * What this machine lacks for a training, in the words of `doctor`, because verl itself would wait for missing GPUs. Empty if a cluster
 * trains.
 */
export async function judgeStart(
  plan: Pick<VerlPlan, 'tree'>,
  { python, env, signal }: Pick<MachineOptions, 'env' | 'signal'> & { readonly python: string },
): Promise<string[]> {
  const address = clusterAddress(env['RAY_ADDRESS']) ?? clusterAddress(valueAt(plan.tree, 'ray_kwargs.ray_init.address'))
  const needs = needsOf(plan)
  if (address !== null || needs.device === 'cpu') return []
  let driver: GpuDriver | null
  try {
    driver = await probeGpuDriver({ env, signal })
  } catch (error) {
    signal?.throwIfAborted()
    return [errorMessage(error)]
  }
  const { torch } = driver ? { torch: null } : await inspectPython(python, verlPython, { env, torch: true, signal })
  return judgeGpus(driver, torch, needs).flatMap(({ level, message }) => (level === 'problem' ? [message] : []))
}
