import { expect, it } from 'vitest'
import { planVerl } from '../config/plan-verl.ts'
import { readVerlConfig } from '../config/read-verl-config.ts'
import { verlRun } from '../config/verl-run.test-support.ts'
import { readWithExcerpt } from '../testing/excerpt-of-verl.ts'
import { findTraps, traps } from './check-plan.ts'

const actor = 'actor_rollout_ref.actor'
const rollout = 'actor_rollout_ref.rollout'
const separate = {
  'trainer.v1.trainer_mode': 'separate_async',
  'data.train_batch_size': 16,
  [`${actor}.ppo_mini_batch_size`]: 4,
  [`${rollout}.nnodes`]: 1,
  [`${rollout}.checkpoint_engine.backend`]: 'nccl',
}
const fixed = { [`${actor}.use_dynamic_bsz`]: false, [`${actor}.ppo_micro_batch_size_per_gpu`]: 4 }
/** A configuration without problems. */
const good = {
  'actor_rollout_ref.model.path': 'Qwen/Qwen3-4B',
  'trainer.n_gpus_per_node': 8,
  'trainer.save_freq': 20,
  'trainer.test_freq': 5,
  'data.max_prompt_length': 1024,
  'data.max_response_length': 4096,
}

type Case = readonly [name: string, keys: Record<string, unknown>, run?: Parameters<typeof verlRun>[0]]

const cases: readonly Case[] = [
  ['not-a-number', { 'data.max_response_length': 'x' }],
  ['not-a-number', { [`${actor}.optim.lr`]: 'abc' }],
  ['not-a-count', { 'data.train_batch_size': 0 }],
  ['not-a-count', { 'data.max_prompt_length': -1 }],
  ['not-a-count', { [`${rollout}.n`]: 2.5 }],
  ['group-of-one', { [`${rollout}.n`]: 1 }],
  ['one-sample-per-prompt', { 'training.samplesPerPrompt': 1 }],
  ['mini-batch-larger-than-batch', { 'data.train_batch_size': 8, [`${actor}.ppo_mini_batch_size`]: 16 }],
  ['mini-batch-does-not-divide', { 'data.train_batch_size': 16, [`${actor}.ppo_mini_batch_size`]: 12 }],
  ['micro-batch-does-not-divide', { ...fixed, [`${actor}.ppo_micro_batch_size_per_gpu`]: 6 }],
  ['log-prob-micro-batch-does-not-divide', { ...fixed, [`${rollout}.log_prob_micro_batch_size_per_gpu`]: 5 }],
  ['fewer-rows-than-a-batch', { 'data.train_batch_size': 128 }],
  ['steps-beyond-epochs', { 'trainer.total_training_steps': 100, 'trainer.total_epochs': 1 }],
  ['dynamic-batch-shorter-than-a-row', { [`${actor}.use_dynamic_bsz`]: true, [`${actor}.ppo_max_token_len_per_gpu`]: 1000 }],
  ['several-updates-from-several-rows', { [`${actor}.ppo_epochs`]: 2 }],
  ['truncated-sampling', { [`${rollout}.top_k`]: 80 }],
  ['truncated-sampling', { [`${rollout}.top_p`]: 0.9 }],
  ['greedy-training', { [`${rollout}.temperature`]: 0 }],
  ['no-logprobs', { [`${rollout}.calculate_log_probs`]: false }],
  ['correction-without-logprobs', { [`${rollout}.calculate_log_probs`]: false, 'algorithm.rollout_correction.rollout_is': 'token' }],
  ['raw-logprobs', { [`${rollout}.logprobs_mode`]: 'raw_logprobs', [`${rollout}.temperature`]: 0.7 }],
  ['async-without-correction', { 'trainer.v1.trainer_mode': 'colocate_async' }],
  ['validation-do-sample', { [`${rollout}.val_kwargs.do_sample`]: false, [`${rollout}.val_kwargs.temperature`]: 1 }],
  ['greedy-validation-repeated', { [`${rollout}.val_kwargs.n`]: 4, [`${rollout}.val_kwargs.temperature`]: 0 }],
  ['beyond-context', { 'data.max_response_length': 40_000 }, { contextLength: 40_960 }],
  ['beyond-engine-length', { [`${rollout}.max_model_len`]: 4096 }],
  ['chunked-prefill-off', { [`${rollout}.enable_chunked_prefill`]: false, [`${rollout}.max_num_batched_tokens`]: 2048 }],
  ['kl-coefficient-zero', { [`${actor}.use_kl_loss`]: true, [`${actor}.kl_loss_coef`]: 0 }],
  ['kl-twice', { [`${actor}.use_kl_loss`]: true, 'algorithm.use_kl_in_reward': true }],
  ['learning-rate', { [`${actor}.optim.lr`]: 1e-3 }],
  ['learning-rate-zero', { [`${actor}.optim.lr`]: 0 }],
  ['dual-clip', { [`${actor}.clip_ratio_c`]: 1 }],
  ['reward-manager-unused', { 'reward.reward_manager.name': 'dapo' }],
  ['native-reward-without-workers', { 'reward.native': true, 'reward.num_workers': 0, 'custom_reward_function.path': '/r.py' }],
  ['native-reward-without-function', { 'reward.native': true }],
  ['legacy-trainer', { 'trainer.use_v1': false }],
  ['legacy-trainer-untested', { 'trainer.use_v1': false, rows: 'last' }],
  ['survivors-are-trained', { 'group.replaceFailed': false }],
  [
    'filter-groups-and-own-buffer',
    {
      'algorithm.filter_groups.enable': true,
      'trainer.v1.sampler.custom_sampler.path': '/s.py',
      'trainer.v1.sampler.custom_sampler.name': 'S',
    },
  ],
  [
    'sync-refill-needs-v1-sampler',
    {
      'group.replaceFailed': false,
      'trainer.v1.sampler.sampler_kwargs.replace_failed': true,
      'trainer.v1.sampler.custom_sampler.path': 'pkg://aworld_train_bridge.verl.replay_buffer',
      'trainer.v1.sampler.custom_sampler.name': 'WholeGroupReplayBuffer',
    },
  ],
  ['logger-needs-key', { 'trainer.logger': ['console', 'swanlab'] }],
  ['load-format', { smoke: true, [`${rollout}.load_format`]: 'dummy' }],
  ['adapter-load-format', { 'actor_rollout_ref.model.lora_rank': 16 }],
  ['ray-cpus', { 'ray_kwargs.ray_init.num_cpus': 4 }],
  ['ray-gpus-on-cpu', { 'trainer.device': 'cpu' }],
  ['validation-every-step', { 'trainer.test_freq': 1 }, { test: { path: '/t.parquet', rows: 1000 } }],
  ['no-checkpoint', { 'trainer.save_freq': -1 }],
  ['last-validation', { 'trainer.test_freq': -1 }],
  ['tensor-parallel-does-not-divide', { [`${rollout}.tensor_model_parallel_size`]: 3 }],
  ['separate-async-pool', { ...separate, [`${rollout}.nnodes`]: 0 }],
  ['hybrid-engine-off', { 'actor_rollout_ref.hybrid_engine': false }],
  ['agent-workers', { 'trainer.use_v1': false, [`${rollout}.agent.num_workers`]: 500 }],
  ['own-agent-column', { [`${rollout}.agent.default_agent_loop`]: 'another' }],
  ['watchdog-before-rollout', { watchdogTimeoutMs: 60_000 }],
  ['custom-template', { 'actor_rollout_ref.model.custom_chat_template': '{{ x }}' }],
]

async function namesOf(keys: Record<string, unknown>, run: Parameters<typeof verlRun>[0] = {}): Promise<string[]> {
  const config = await readVerlConfig({ ...good, ...keys }, { verl: readWithExcerpt })
  expect(config.problems).toEqual([])
  return findTraps(await planVerl(config, verlRun(run))).map(({ name }) => name)
}

it('finds nothing amiss where nothing is', async () => expect(await namesOf({})).toEqual([]))

it.each(cases.map(([name, keys, run]) => ({ name, keys, run })))('$name is found with $keys', async ({ name, keys, run }) => {
  expect(await namesOf(keys, run)).toContain(name)
})

it('says every trap in whole sentences', async () => {
  for (const [, keys, run] of cases) {
    const found = findTraps(await planVerl(await readVerlConfig({ ...good, ...keys }, { verl: readWithExcerpt }), verlRun(run)))
    for (const { message } of found) expect(message).toMatch(/^[A-Za-z$].*[.]$/s)
  }
})

it('finds what only a broken tree holds', async () => {
  const { tree, ...plan } = await planVerl(await readVerlConfig(good, { verl: readWithExcerpt }), verlRun())
  const with_ = (change: Record<string, unknown>) => findTraps({ ...plan, tree: { ...tree, ...change } }).map(({ name }) => name)
  expect(with_({ custom_reward_function: { path: '/r.py' } })).toEqual(['legacy-reward-keys'])
})

it('has a case for every trap', async () => {
  const named = new Set([...cases.map(([name]) => name), 'legacy-reward-keys', 'default-model', 'default-lengths'])
  expect(traps.map(({ name }) => name).filter((name) => !named.has(name))).toEqual([])
  expect(findTraps(await planVerl(await readVerlConfig({}, { verl: readWithExcerpt }), verlRun())).map(({ name }) => name)).toEqual(
    expect.arrayContaining(['default-model', 'default-lengths']),
  )
})
