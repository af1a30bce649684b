/** One key of verl's configuration for a run on CPU, with its reason. */
export interface SmokeSetting {
  /** Dotted path in verl 0.9's configuration. Keys that are not in its schema are added. */
  readonly key: string
  readonly value: string | number | boolean | readonly string[]
  readonly reason: string
}

/** Keys that verl 0.9 needs to train on CPU with the replica `cpu_hf` of the bridge, for any task and model. */
export const smokeSettings: readonly SmokeSetting[] = [
  { key: 'trainer.device', value: 'cpu', reason: 'the platform that the plug-in registers' },
  { key: 'trainer.nnodes', value: 1, reason: 'one machine' },
  { key: 'trainer.n_gpus_per_node', value: 1, reason: 'one rank; each further rank is a process of 0.5 GB' },
  { key: 'ray_kwargs.ray_init.num_cpus', value: 16, reason: 'logical: more than there are actors, or Ray waits for ever' },
  { key: 'ray_kwargs.ray_init.num_gpus', value: 1, reason: 'logical: resource pools ask Ray for a GPU per rank' },
  { key: 'ray_kwargs.ray_init.include_dashboard', value: false, reason: 'nobody looks at it' },
  { key: 'actor_rollout_ref.rollout.name', value: 'cpu_hf', reason: 'the replica that samples on CPU' },
  { key: 'actor_rollout_ref.rollout.tensor_model_parallel_size', value: 1, reason: 'a replica is one process' },
  { key: 'actor_rollout_ref.rollout.load_format', value: 'auto', reason: 'weights are read from the model folder at first' },
  { key: 'actor_rollout_ref.rollout.agent.num_workers', value: 1, reason: 'one process is enough for hundreds of rollouts' },
  { key: 'actor_rollout_ref.model.use_remove_padding', value: false, reason: 'packed rows need flash attention' },
  { key: 'actor_rollout_ref.model.enable_gradient_checkpointing', value: false, reason: 'memory is no concern; time is' },
  {
    key: 'actor_rollout_ref.model.override_config.attn_implementation',
    value: 'sdpa',
    reason: 'flash attention is for GPUs; a pass takes four fifths of that with eager',
  },
  { key: 'actor_rollout_ref.actor.strategy', value: 'fsdp2', reason: 'runs on gloo' },
  { key: 'actor_rollout_ref.actor.use_torch_compile', value: false, reason: 'needs a compiler and minutes' },
  { key: 'actor_rollout_ref.actor.fsdp_config.use_torch_compile', value: false, reason: 'needs a compiler and minutes' },
  {
    key: 'actor_rollout_ref.actor.fsdp_config.mixed_precision.param_dtype',
    value: 'fp32',
    reason: 'the default computes in bf16, which differs from the sampler by 1e-3',
  },
  { key: 'actor_rollout_ref.actor.fsdp_config.mixed_precision.reduce_dtype', value: 'fp32', reason: 'as above' },
  { key: 'actor_rollout_ref.actor.fsdp_config.mixed_precision.buffer_dtype', value: 'fp32', reason: 'as above' },
  { key: 'reward.num_workers', value: 0, reason: 'AWorld Train scores; a process of 0.5 GB less' },
  {
    key: 'transfer_queue.backend.SimpleStorage.num_data_storage_units',
    value: 1,
    reason: 'a process each; one holds a batch of this size',
  },
  {
    key: 'trainer.v1.sampler.custom_sampler.path',
    value: 'pkg://aworld_train_bridge.verl.replay_buffer',
    reason: 'groups with a failed member are replaced whole',
  },
  { key: 'trainer.v1.sampler.custom_sampler.name', value: 'WholeGroupReplayBuffer', reason: 'as above' },
  { key: 'trainer.v1.sampler.sync_refill_failed_groups', value: true, reason: 'lets the dataloader give single prompts' },
  { key: 'trainer.v1.sampler.sampler_kwargs.poll_interval', value: 0.2, reason: 'verl polls every 2 s, longer than a batch takes' },
  { key: 'data.dataloader_num_workers', value: 0, reason: 'no process for a few hundred rows' },
  { key: 'trainer.logger', value: ['console'], reason: 'no service to log to' },
]

/** Environment variables of every process of a verl run on CPU, in addition to those of the bridge. */
export const smokeEnvironment: Readonly<Record<string, string>> = {
  AWORLD_TRAIN_SMOKE: '1',
  // FSDP engines are registered only for `cuda` and `npu`, but the class itself runs on CPU.
  VERL_ENGINE_DEVICE: 'cuda',
  TORCH_COMPILE_DISABLE: '1',
  HF_HUB_OFFLINE: '1',
  // Two threads wait for each other at every operation. On two cores that others also use, an update takes nine times as long.
  OMP_NUM_THREADS: '1',
  RAY_USAGE_STATS_ENABLED: '0',
}
