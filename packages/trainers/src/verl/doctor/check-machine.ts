import type { GpuDriver, MachineCheck, MachineOptions, PythonFacts } from '@aworld-train/core'
import { valueAt } from '@aworld-train/training'
import { inspectPython } from '../../shared/environment/inspect-python.ts'
import { probeGpuDriver } from '../../shared/environment/probe-gpu-driver.ts'
import { toProblem } from '../../shared/training/diagnose.ts'
import type { VerlPlan } from '../config/verl-config.ts'
import { verlPython } from '../python/version-rules.ts'
import { judgeGpus, judgeMachine } from './judge-machine.ts'
import { needsOf } from './judge-start.ts'
import { readMachine } from './read-machine.ts'
import { tryImports } from './try-imports.ts'

export interface CheckMachineOptions extends MachineOptions {
  readonly plan: Pick<VerlPlan, 'tree'> | null
  readonly python: string | null
}

/** Checks the needs of verl: GPUs and the torch that uses them, memory, disks, Ray, and then whether its trainer can be imported. */
export async function* checkMachine({ plan, python, env, directory, signal }: CheckMachineOptions): AsyncGenerator<MachineCheck> {
  const needs = plan && needsOf(plan)
  const report = python === null ? null : await inspectPython(python, verlPython, { env, torch: true, signal })
  if (plan && report) yield* attentionOf(plan, report)
  let driver: GpuDriver | null = null
  try {
    driver = await probeGpuDriver({ env, signal })
  } catch (error) {
    yield toProblem('driver', error, signal)
  }
  yield* judgeGpus(driver, report?.torch ?? null, needs)
  yield* judgeMachine(await readMachine({ env, directory }), needs)
  if (python !== null) yield await tryImports({ python, env, signal }).catch((error: unknown) => toProblem('imports', error, signal))
}

/** verl 0.9 asks transformers for FlashAttention unless it is told otherwise (workers/config/model.py). */
export function attentionOf({ tree }: Pick<VerlPlan, 'tree'>, { packages }: Pick<PythonFacts, 'packages'>): MachineCheck[] {
  if (valueAt(tree, 'trainer.device') === 'cpu' || packages['flash-attn'] != null) return []
  const attention = valueAt(tree, 'actor_rollout_ref.model.override_config.attn_implementation') ?? 'flash_attention_2'
  if (attention !== 'flash_attention_2') return []
  const message =
    'verl asks for FlashAttention, and flash-attn is not installed: install it into the environment, or set +actor_rollout_ref.model.override_config.attn_implementation=sdpa and actor_rollout_ref.model.use_remove_padding=False.'
  return [{ name: 'config', level: 'warning', message }]
}
