import type { DerivationContext } from './derivation.ts'

const actor = 'actor_rollout_ref.actor'
const rollout = 'actor_rollout_ref.rollout'
const sampler = 'trainer.v1.sampler'

export function deriveBatch({ run, fill, value, isSet, config, keys }: DerivationContext): void {
  fill('algorithm.adv_estimator', 'grpo', 'rewards are relative to a group; there is no critic')
  fill(`${rollout}.n`, 8, 'a group of samples for each prompt')
  const separate = value('trainer.v1.trainer_mode') === 'separate_async'
  const syncs = Number(value('trainer.v1.separate_async.parameter_sync_step'))
  const mini = value(`${actor}.ppo_mini_batch_size`)
  if (!isSet('data.train_batch_size')) {
    const rows = run.train?.rows ?? 16
    if (separate && isSet(`${actor}.ppo_mini_batch_size`))
      fill('data.train_batch_size', syncs * Number(mini), `${syncs} weight syncs' updates of ppo_mini_batch_size`)
    else if (separate)
      fill(
        'data.train_batch_size',
        syncs * Math.max(1, Math.floor(Math.min(16, rows) / syncs)),
        'prompts of a step, a multiple of parameter_sync_step',
      )
    else fill('data.train_batch_size', Math.max(1, Math.min(16, rows)), rows < 16 ? 'all rows there are' : 'prompts of a step')
  }
  const prompts = Number(value('data.train_batch_size'))
  if (separate && prompts % syncs === 0)
    fill(`${actor}.ppo_mini_batch_size`, prompts / syncs, 'train_batch_size / parameter_sync_step, which separate_async asks for')
  else fill(`${actor}.ppo_mini_batch_size`, prompts, 'one update a step')
  const steps = value('trainer.total_training_steps')
  const source = run.train && value('data.train_files') === run.train.path ? run.train : null
  if (typeof steps === 'number' && source && source.rows >= prompts)
    fill(
      'trainer.total_epochs',
      Math.ceil(steps / Math.floor(source.rows / prompts)),
      `${steps} steps of ${prompts} of ${source.rows} prompts`,
    )
  if (keys.get('data.seed')?.value === null) keys.delete('data.seed')
  fill('data.seed', config.settings.seed, 'seed: the order of prompts is the same in every start')
}

export function deriveMicroBatches({ fill, value, isSet, config }: DerivationContext): void {
  const explicit = `${actor}.ppo_micro_batch_size_per_gpu`
  if (value(`${actor}.use_dynamic_bsz`) !== true && !isSet(explicit) && !isSet(`${actor}.ppo_micro_batch_size`) && !config.settings.smoke)
    fill(`${actor}.use_dynamic_bsz`, true, 'no micro batch size is set: micro batches are cut by tokens')
  if (value(`${actor}.use_dynamic_bsz`) === true) {
    const longest = Number(value('data.max_prompt_length')) + Number(value('data.max_response_length'))
    if (longest > Number(value(`${actor}.ppo_max_token_len_per_gpu`)))
      fill(`${actor}.ppo_max_token_len_per_gpu`, longest, 'a row of max_prompt_length + max_response_length has to fit')
    return
  }
  if (config.settings.smoke)
    fill(
      explicit,
      Math.min(64, Number(value(`${actor}.ppo_mini_batch_size`)) * Number(value(`${rollout}.n`))),
      'on CPU: a micro batch that divides the rows of an update',
    )
  const size = value(explicit)
  if (typeof size === 'number') {
    fill(`${rollout}.log_prob_micro_batch_size_per_gpu`, size, 'as ppo_micro_batch_size_per_gpu')
    if (value(`${actor}.use_kl_loss`) === true || value('algorithm.use_kl_in_reward') === true)
      fill('actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu', size, 'as ppo_micro_batch_size_per_gpu')
  }
}

export function deriveSampling({ fill, value, isSet, config }: DerivationContext): void {
  if (!config.settings.smoke) {
    if (value(`${rollout}.name`) === '???') fill(`${rollout}.name`, 'vllm', 'the engine that samples')
    fill(`${rollout}.tensor_model_parallel_size`, 1, "verl's default of 2 needs two GPUs")
  }
  const { temperature, topP, topK, samplesPerPrompt, before } = config.settings.evaluation
  const why = 'evaluation: as with the engine in the box'
  // Turning sampling off means greedy decoding, but verl reads only the temperature.
  const greedy = isSet(`${rollout}.val_kwargs.do_sample`) && value(`${rollout}.val_kwargs.do_sample`) === false
  if (!greedy) fill(`${rollout}.val_kwargs.temperature`, temperature, why)
  fill(`${rollout}.val_kwargs.top_p`, topP, why)
  fill(`${rollout}.val_kwargs.top_k`, topK === 0 ? -1 : topK, why)
  fill(`${rollout}.val_kwargs.n`, samplesPerPrompt, why)
  fill('trainer.val_before_train', before, why)
  fill(`${rollout}.calculate_log_probs`, true, 'every sampled token has its logprob')
}

export function deriveFailures({ config, fill, override, value }: DerivationContext): void {
  const { replaceFailed, maxReplaced, pollSeconds } = config.settings.group
  if (value('trainer.use_v1') === false) return
  const why = replaceFailed ? 'group.replaceFailed: a group with a failed rollout is replaced whole' : 'counts what is trained'
  fill(`${sampler}.custom_sampler.path`, 'pkg://aworld_train_bridge.verl.replay_buffer', why)
  fill(`${sampler}.custom_sampler.name`, 'WholeGroupReplayBuffer', why)
  if (replaceFailed)
    override(`${sampler}.sync_refill_failed_groups`, true, 'makes the dataloader give single prompts, which replace a group')
  else fill(`${sampler}.sampler_kwargs.replace_failed`, false, 'group.replaceFailed: survivors of a group are trained')
  if (maxReplaced !== null) fill(`${sampler}.sampler_kwargs.max_refills`, maxReplaced, 'group.maxReplaced')
  fill(`${sampler}.sampler_kwargs.poll_interval`, config.settings.smoke ? 0.2 : pollSeconds, 'group.pollSeconds: verl polls every 2 s')
}
