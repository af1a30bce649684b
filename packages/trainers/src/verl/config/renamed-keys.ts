/** The change of a key since verl 0.5. */
export interface RenamedKey {
  /** The key that has its value now; `null` if there is none. */
  readonly to: string | null
  readonly since: string
  readonly convert?: (value: unknown) => unknown
  /** Neutral values, which are dropped silently. */
  readonly neutral?: readonly unknown[]
}

const rollout = 'actor_rollout_ref.rollout'
const actor = 'actor_rollout_ref.actor'
const reward = 'reward.custom_reward_function'
const nsys = 'global_profiler.global_tool_config.nsys'

/**
 * Changes by old key. The sources are the release notes and `migrate_legacy_reward_impl` of verl/experimental/reward_loop/reward_loop.py
 * (0.9.1), which `main_ppo` does not call.
 */
const keys: Readonly<Record<string, RenamedKey>> = {
  'custom_reward_function.path': { to: `${reward}.path`, since: '0.7.1' },
  'custom_reward_function.name': { to: `${reward}.name`, since: '0.7.1' },
  'custom_reward_function.reward_fn_file_path': { to: `${reward}.path`, since: '0.7.1' },
  'custom_reward_function.reward_fn_name': { to: `${reward}.name`, since: '0.7.1' },
  'custom_reward_function.reward_kwargs': { to: `${reward}.reward_kwargs`, since: '0.7.1' },
  'reward_model.num_workers': { to: 'reward.num_workers', since: '0.7.1' },
  'reward_model.reward_manager': { to: 'reward.reward_manager.name', since: '0.7.1' },
  'reward_model.reward_loop_source': { to: 'reward.reward_manager.source', since: '0.7.1' },
  'reward_model.reward_loop_module_path': { to: 'reward.reward_manager.module.path', since: '0.7.1' },
  'reward_model.reward_loop_class_name': { to: 'reward.reward_manager.module.name', since: '0.7.1' },
  'reward_model.reward_kwargs': { to: 'reward.reward_kwargs', since: '0.7.1' },
  'reward_model.enable': { to: 'reward.reward_model.enable', since: '0.7.1' },
  'reward_model.enable_resource_pool': { to: 'reward.reward_model.enable_resource_pool', since: '0.7.1' },
  'reward_model.n_gpus_per_node': { to: 'reward.reward_model.n_gpus_per_node', since: '0.7.1' },
  'reward_model.nnodes': { to: 'reward.reward_model.nnodes', since: '0.7.1' },
  'reward_model.model.path': { to: 'reward.reward_model.model_path', since: '0.7.1' },
  'reward_model.model.external_lib': { to: null, since: '0.7.1', neutral: [null] },
  'reward_model.model.trust_remote_code': { to: null, since: '0.7.1', neutral: [null, false] },
  'reward_model.launch_reward_fn_async': { to: null, since: '0.7.0', neutral: [null, false] },
  'reward_model.strategy': { to: null, since: '0.7.0' },
  'reward_model.max_length': { to: null, since: '0.7.0', neutral: [null] },
  'sandbox_fusion.url': { to: 'reward.sandbox_fusion.url', since: '0.7.1' },
  'sandbox_fusion.max_concurrent': { to: 'reward.sandbox_fusion.max_concurrent', since: '0.7.1' },
  'sandbox_fusion.memory_limit_mb': { to: 'reward.sandbox_fusion.memory_limit_mb', since: '0.7.1' },
  [`${actor}.grad_clip`]: { to: `${actor}.optim.clip_grad`, since: '0.7.0' },
  [`${actor}.optim.grad_clip`]: { to: `${actor}.optim.clip_grad`, since: '0.7.0' },
  [`${actor}.optim.warmup_style`]: { to: `${actor}.optim.lr_scheduler_type`, since: '0.7.0', neutral: [null] },
  [`${actor}.checkpoint.contents`]: { to: `${actor}.checkpoint.save_contents`, since: '0.5.0' },
  [`${actor}.tis_imp_ratio_cap`]: { to: 'algorithm.rollout_correction.rollout_is_threshold', since: '0.6.1', neutral: [-1, null] },
  'algorithm.rollout_is_threshold': { to: 'algorithm.rollout_correction.rollout_is_threshold', since: '0.6.1', neutral: [null] },
  'algorithm.rollout_is_level': { to: 'algorithm.rollout_correction.rollout_is', since: '0.6.1' },
  'algorithm.rollout_is': { to: null, since: '0.6.1', neutral: [null, false] },
  [`${rollout}.multi_turn.max_turns`]: { to: `${rollout}.multi_turn.max_assistant_turns`, since: '0.5.0', neutral: [null] },
  [`${rollout}.multi_turn.interaction_config_path`]: { to: null, since: '0.9.0', neutral: [null] },
  [`${rollout}.multi_turn.completion_callback`]: { to: null, since: '0.5.0', neutral: [null] },
  [`${rollout}.multi_turn.enable_tokenization_sanity_check`]: { to: null, since: '0.5.0', neutral: [null, true, false] },
  [`${rollout}.chat_scheduler`]: { to: null, since: '0.5.0', neutral: [null] },
  [`${rollout}.enable_memory_saver`]: { to: null, since: '0.7.0', neutral: [null, true, false] },
  [`${rollout}.update_weights_bucket_megabytes`]: { to: `${rollout}.checkpoint_engine.update_weights_bucket_megabytes`, since: '0.8.0' },
  'trainer.val_generations_to_log_to_wandb': { to: 'trainer.log_val_generations', since: '0.3.0' },
  'trainer.remove_previous_ckpt_in_save': { to: null, since: '0.5.0', neutral: [false, null] },
  'trainer.profile_steps': { to: 'global_profiler.steps', since: '0.6.0' },
  'trainer.controller_nsight_options': { to: `${nsys}.controller_nsight_options`, since: '0.6.0' },
  'trainer.worker_nsight_options': { to: `${nsys}.worker_nsight_options`, since: '0.6.0' },
  'ray_init.num_cpus': { to: 'ray_kwargs.ray_init.num_cpus', since: '0.6.0' },
  'ray_init.timeline_json_file': { to: 'ray_kwargs.timeline_json_file', since: '0.6.0' },
}

/** Changes by the beginning of the old key. */
const prefixes: readonly (readonly [from: string, row: RenamedKey])[] = [
  ['reward_model.rollout.', { to: 'reward.reward_model.rollout.', since: '0.7.1' }],
  ['custom_reward_function.reward_kwargs.', { to: `${reward}.reward_kwargs.`, since: '0.7.1' }],
  ['reward_model.reward_kwargs.', { to: 'reward.reward_kwargs.', since: '0.7.1' }],
  ['reward_model.sandbox_fusion.', { to: 'reward.sandbox_fusion.', since: '0.7.1' }],
  ['trainer.controller_nsight_options.', { to: `${nsys}.controller_nsight_options.`, since: '0.6.0' }],
  ['trainer.worker_nsight_options.', { to: `${nsys}.worker_nsight_options.`, since: '0.6.0' }],
  ['trainer.npu_profile.', { to: null, since: '0.6.0' }],
  ['async_training.', { to: null, since: '0.9.0' }],
]

/** The change of a key; `null` if it has not changed. */
export function renamedKey(path: string): RenamedKey | null {
  if (Object.hasOwn(keys, path)) return keys[path]!
  for (const [from, row] of prefixes)
    if (path.startsWith(from)) return { ...row, to: row.to === null ? null : `${row.to}${path.slice(from.length)}` }
  return null
}
