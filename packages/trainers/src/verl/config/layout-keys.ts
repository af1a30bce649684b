import type { VerlLayout } from './verl-settings.ts'

export interface LayoutKeys {
  readonly keys: readonly (readonly [path: string, value: unknown, why: string])[]
  readonly problems: readonly string[]
}

const schedules = {
  hybrid: ['sync', 'colocate_async'],
  colocated: ['separate_async'],
  standalone: ['separate_async'],
} as const

/** A layout in the keys of verl's V1 trainer (verl/trainer/ppo/v1, 0.9.1). */
export function layoutKeys(layout: VerlLayout): LayoutKeys {
  const { mode, trainer, rollout, syncEvery, staleness, transfer } = layout
  const possible: readonly string[] = schedules[mode]
  const schedule = layout.schedule ?? possible[0]!
  const why = `layout: ${mode}`
  if (!possible.includes(schedule)) {
    return {
      keys: [],
      problems: [
        mode === 'hybrid'
          ? `layout.schedule is "separate_async", which needs replicas of their own; set mode to "standalone" or "colocated", or schedule to "sync" or "colocate_async".`
          : `layout.schedule is "${schedule}", in which verl samples on the GPUs that train alone; with mode "${mode}" it is "separate_async".`,
      ],
    }
  }
  const keys: [string, unknown, string][] = [
    ['trainer.nnodes', trainer.nodes, why],
    ['trainer.n_gpus_per_node', trainer.gpus, why],
    ['actor_rollout_ref.rollout.tensor_model_parallel_size', rollout.tensorParallel, why],
    ['trainer.v1.trainer_mode', schedule, why],
  ]
  if (staleness !== null)
    keys.push([
      'trainer.v1.sampler.max_off_policy_threshold',
      staleness + 1,
      `layout.staleness: a sample may span ${staleness + 1} weight versions`,
    ])
  const problems: string[] = []
  const pool = mode === 'hybrid' ? trainer.gpus : rollout.gpus
  if (pool % rollout.tensorParallel !== 0)
    problems.push(
      `layout.rollout.tensorParallel is ${rollout.tensorParallel}, which does not divide the ${pool} GPUs of a node; make it a divisor of them.`,
    )
  if (schedule === 'separate_async') {
    keys.push(
      ['actor_rollout_ref.rollout.nnodes', rollout.nodes, `${why}: the pool of the replicas`],
      ['actor_rollout_ref.rollout.n_gpus_per_node', rollout.gpus, `${why}: the pool of the replicas`],
      [
        'actor_rollout_ref.hybrid_engine',
        mode === 'colocated',
        mode === 'colocated' ? `${why}: the GPUs that train sample too` : `${why}: no replica on the GPUs that train`,
      ],
      ['actor_rollout_ref.rollout.checkpoint_engine.backend', transfer, 'layout.transfer: weights cross from one pool to the other'],
      ['trainer.v1.separate_async.parameter_sync_step', syncEvery, 'layout.syncEvery'],
      [
        'trainer.v1.separate_async.hybrid_rollout.enable_switch',
        mode === 'colocated',
        `${why}: idle GPUs of the trainer go over to sampling`,
      ],
    )
  }
  return { keys, problems }
}
