import { tmpdir } from 'node:os'
import { valueAt } from '@aworld-train/training'
import { describe, expect, it } from 'vitest'
import { readWithExcerpt } from '../testing/excerpt-of-verl.ts'
import { publishedOverrides } from '../testing/published-overrides.ts'
import { planVerl } from './plan-verl.ts'
import { readVerlConfig } from './read-verl-config.ts'
import { verlRun } from './verl-run.test-support.ts'

const rollout = 'actor_rollout_ref.rollout'

const plan = async (source: Parameters<typeof readVerlConfig>[0], parts: Parameters<typeof verlRun>[0] = {}) => {
  const config = await readVerlConfig(source, {
    verl: readWithExcerpt,
    baseDirectory: typeof source === 'string' ? tmpdir() : '/project',
  })
  expect(config.problems).toEqual([])
  return await planVerl(config, verlRun(parts))
}
const model = { 'actor_rollout_ref.model.path': 'Qwen/Qwen3-4B' }

describe('planVerl', () => {
  it('accepts the overrides of the published launch script, and warns of what cannot learn', async () => {
    const { problems, warnings, overrides } = await plan(publishedOverrides())
    expect(problems).toEqual([])
    expect(warnings.join('\n')).toMatch(/rollout\.n is 1 with grpo/)
    expect(overrides).toContain(`${rollout}.agent.agent_loop_config_path=/runs/gaia/agent.yaml`)
    expect(overrides.join('\n')).not.toMatch(/multi_turn|custom_reward_function\.path=\/your/)
  })

  it('fills what is empty and says why', async () => {
    const { keys, problems, steps, checkpoints } = await plan(model)
    expect(problems).toEqual([])
    expect([steps, checkpoints]).toEqual([4 * 30, '/runs/gaia/checkpoints'])
    const lines = [...keys.values()]
      .filter(({ path }) => !path.includes('env_vars'))
      .map(({ path, value, origin, why }) => `${path} = ${JSON.stringify(value)}  ${origin}: ${why}`)
    expect(lines.join('\n')).toMatchInlineSnapshot(`
      "actor_rollout_ref.model.path = "Qwen/Qwen3-4B"  user: the configuration
      data.train_files = "/runs/gaia/train_data.parquet"  derived: the training data of the run
      data.val_files = "/runs/gaia/test_data.parquet"  derived: the test data of the run
      actor_rollout_ref.rollout.agent.default_agent_loop = "gaia_agent"  derived: the agent in training
      actor_rollout_ref.rollout.agent.agent_loop_config_path = "/runs/gaia/agent.yaml"  derived: rendered for the bridge
      reward.num_workers = 0  derived: every row comes with its reward
      algorithm.adv_estimator = "grpo"  derived: rewards are relative to a group; there is no critic
      actor_rollout_ref.rollout.n = 8  derived: a group of samples for each prompt
      data.train_batch_size = 16  derived: prompts of a step
      actor_rollout_ref.actor.ppo_mini_batch_size = 16  derived: one update a step
      data.seed = 1  derived: seed: the order of prompts is the same in every start
      actor_rollout_ref.actor.use_dynamic_bsz = true  derived: no micro batch size is set: micro batches are cut by tokens
      actor_rollout_ref.rollout.name = "vllm"  derived: the engine that samples
      actor_rollout_ref.rollout.tensor_model_parallel_size = 1  derived: verl's default of 2 needs two GPUs
      actor_rollout_ref.rollout.val_kwargs.temperature = 1  derived: evaluation: as with the engine in the box
      trainer.v1.sampler.custom_sampler.path = "pkg://aworld_train_bridge.verl.replay_buffer"  derived: group.replaceFailed: a group with a failed rollout is replaced whole
      trainer.v1.sampler.custom_sampler.name = "WholeGroupReplayBuffer"  derived: group.replaceFailed: a group with a failed rollout is replaced whole
      trainer.v1.sampler.sync_refill_failed_groups = true  derived: makes the dataloader give single prompts, which replace a group
      trainer.v1.sampler.sampler_kwargs.poll_interval = 0.5  derived: group.pollSeconds: verl polls every 2 s
      trainer.logger = ["console","file"]  derived: progress is read from the file
      trainer.project_name = "aworld-train"  derived: the project
      trainer.experiment_name = "gaia"  derived: the run
      trainer.default_local_dir = "/runs/gaia/checkpoints"  derived: the run directory
      trainer.save_freq = 120  derived: the last step is kept
      trainer.test_freq = 120  derived: the last step is validated"
    `)
  })

  it("never puts a value in the place of the user's", async () => {
    const own = {
      [`${rollout}.n`]: 4,
      'data.train_batch_size': 1024,
      'trainer.default_local_dir': 'ckpt',
      'algorithm.adv_estimator': 'rloo',
      'reward.num_workers': 2,
    }
    const { keys, checkpoints } = await plan({ ...model, ...own })
    for (const [path, value] of Object.entries({ ...own, 'trainer.default_local_dir': '/project/ckpt' }))
      expect(keys.get(path)).toMatchObject({ value, origin: 'user' })
    expect(checkpoints).toBe('/project/ckpt')
  })

  it.each([
    ['console', ['console', 'file']],
    [
      ['console', 'tensorboard'],
      ['console', 'tensorboard', 'file'],
    ],
    [['file'], ['file']],
  ])('adds the file that progress is read from to logger %j', async (logger, expected) => {
    expect(valueAt((await plan({ ...model, 'trainer.logger': logger })).tree, 'trainer.logger')).toEqual(expected)
  })

  it('makes as many epochs as the steps need', async () => {
    const { tree, steps } = await plan({ ...model, training: { steps: 10 }, 'data.train_batch_size': 16 })
    expect([valueAt(tree, 'trainer.total_epochs'), steps]).toEqual([3, 10])
  })

  it('validates nothing without test data, and never on the training data', async () => {
    const { tree, problems } = await plan(model, { test: null })
    expect(problems).toEqual([])
    expect([valueAt(tree, 'trainer.val_before_train'), valueAt(tree, 'trainer.test_freq')]).toEqual([false, -1])
    expect((await plan({ ...model, 'trainer.test_freq': 5 }, { test: null })).problems.join()).toMatch(/there is no test data/)
  })

  it.each([
    ['./reward.ts', null],
    ['/p/reward.py', '/p/reward.py'],
  ])('shows verl a reward in %s as %s', async (path, shown) => {
    const { tree } = await plan(model, { reward: { path, name: 'score' } })
    expect(valueAt(tree, 'reward.custom_reward_function.path')).toBe(shown)
    expect(valueAt(tree, 'reward.num_workers')).toBe(0)
  })

  it('leaves the reward to verl when told to', async () => {
    const { tree, problems } = await plan({ ...model, 'custom_reward_function.path': 'r.py', 'reward.native': true })
    expect(problems).toEqual([])
    expect(valueAt(tree, 'reward.custom_reward_function.path')).toBe('/project/r.py')
    expect(valueAt(tree, 'reward.num_workers')).toBe(8)
    expect((await plan({ ...model, 'reward.native': true }, { reward: { path: '/p/r.ts', name: null } })).problems.join()).toMatch(
      /cannot call/,
    )
  })

  it('takes the settings for CPU where the user sets none', async () => {
    const { tree, problems, environment } = await plan({
      ...model,
      [`${rollout}.load_format`]: 'safetensors',
      smoke: true,
    })
    expect(problems).toEqual([])
    expect([valueAt(tree, `${rollout}.name`), valueAt(tree, 'trainer.device'), valueAt(tree, `${rollout}.load_format`)]).toEqual([
      'cpu_hf',
      'cpu',
      'safetensors',
    ])
    expect(environment).toMatchObject({ AWORLD_TRAIN_SMOKE: '1' })
  })
})

describe('a layout', () => {
  const layout = async (own: object, keys: object = {}) => await plan({ ...model, ...keys, layout: own })
  const shown = [
    'trainer.nnodes',
    'trainer.n_gpus_per_node',
    `${rollout}.nnodes`,
    `${rollout}.n_gpus_per_node`,
    `${rollout}.tensor_model_parallel_size`,
    'trainer.v1.trainer_mode',
    'actor_rollout_ref.hybrid_engine',
    `${rollout}.checkpoint_engine.backend`,
  ]

  it.each([
    [{ trainer: { gpus: 8 } }, [1, 8, 0, 8, 1, 'sync', true, 'naive']],
    [
      { schedule: 'colocate_async', trainer: { nodes: 2, gpus: 8 }, rollout: { tensorParallel: 4 } },
      [2, 8, 0, 8, 4, 'colocate_async', true, 'naive'],
    ],
    [
      { mode: 'standalone', trainer: { gpus: 8 }, rollout: { gpus: 8, tensorParallel: 2 } },
      [1, 8, 1, 8, 2, 'separate_async', false, 'nccl'],
    ],
    [
      { mode: 'colocated', trainer: { gpus: 8 }, rollout: { nodes: 2, gpus: 4 }, transfer: 'nixl' },
      [1, 8, 2, 4, 1, 'separate_async', true, 'nixl'],
    ],
  ] as const)('%j', async (own, expected) => {
    const { tree, problems } = await layout(own)
    expect(problems).toEqual([])
    expect(shown.map((path) => valueAt(tree, path))).toEqual(expected)
  })

  it('keeps the sizes of batches that separate_async asks for', async () => {
    const sizes = ({ tree }: Awaited<ReturnType<typeof layout>>) => [
      valueAt(tree, 'data.train_batch_size'),
      valueAt(tree, 'actor_rollout_ref.actor.ppo_mini_batch_size'),
    ]
    expect(sizes(await layout({ mode: 'standalone' }))).toEqual([16, 4])
    expect(sizes(await layout({ mode: 'standalone', syncEvery: 2 }, { 'actor_rollout_ref.actor.ppo_mini_batch_size': 8 }))).toEqual([16, 8])
  })

  it('counts staleness in weight versions', async () => {
    expect(valueAt((await layout({ mode: 'standalone', staleness: 1 })).tree, 'trainer.v1.sampler.max_off_policy_threshold')).toBe(2)
  })

  it.each([
    [{ schedule: 'separate_async' }, /needs replicas of their own/],
    [{ mode: 'standalone', schedule: 'sync' }, /samples on the GPUs that train alone/],
    [{ trainer: { gpus: 6 }, rollout: { tensorParallel: 4 } }, /does not divide the 6 GPUs/],
  ])('%j is refused', async (own, message) => expect((await layout(own)).problems.join('\n')).toMatch(message))
})
