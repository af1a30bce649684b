import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readWithExcerpt } from '../testing/excerpt-of-verl.ts'
import { overridesOf, publishedOverrides } from '../testing/published-overrides.ts'
import { readVerlConfig } from './read-verl-config.ts'
import type { VerlConfig } from './verl-config.ts'

let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'aworld-train-verl-config-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const valuesOf = (config: VerlConfig) => Object.fromEntries([...config.keys].map(([path, { value }]) => [path, value]))

describe('a launch script', () => {
  it.each(['run.sh', 'run.bash', 'run'])(
    '%s is not run to be read, and the problem has the command that gets its overrides',
    async (name) => {
      const file = join(directory, name)
      writeFileSync(file, `#!/usr/bin/env bash\ntouch ${join(directory, 'made')}\npython3 -m verl.trainer.main_ppo trainer.nnodes=1\n`)
      const { problems, keys } = await readVerlConfig(name, { verl: readWithExcerpt, baseDirectory: directory })
      expect(problems).toEqual([expect.stringMatching(/this is a script.*bash -c .* run.*readFileSync\('overrides\.txt'/s)])
      expect([keys.size, existsSync(join(directory, 'made'))]).toEqual([0, false])
    },
  )

  it('gives its overrides by that command: as bash reads them, without those of other programs', () => {
    const text = `lr=5e-4\npython3 prepare.py\nfor n in 8; do\n  python3 -m verl.trainer.main_ppo a.lr=$lr a.n=$n "k.t=x y" "k.u=it's"\ndone\n`
    expect(overridesOf(text)).toEqual(['a.lr=5e-4', 'a.n=8', 'k.t=x y', "k.u=it's"])
  })
})

describe('the overrides of the published launch script', () => {
  const config = async () =>
    await readVerlConfig(publishedOverrides({ GPUS_PER_NODE: '4' }), { verl: readWithExcerpt, baseDirectory: directory })

  it('are accepted without a problem', async () => expect((await config()).problems).toEqual([]))

  it('say what has another name or no effect since', async () => {
    expect((await config()).notes).toMatchInlineSnapshot(`
      [
        "custom_reward_function.path is reward.custom_reward_function.path since verl 0.7.1.",
        "custom_reward_function.name is reward.custom_reward_function.name since verl 0.7.1.",
        "actor_rollout_ref.rollout.multi_turn.tool_config_path is read by verl's own tool_agent only; tools and turns are the agent's here.",
        "multi_turn.max_assistant_turns and max_user_turns are obeyed by the rollout service: an agent has 8 turns.",
      ]
    `)
  })

  it('keep their values, and give agent, turns and reward to our side', async () => {
    const { settings, agentFile } = await config()
    expect(valuesOf(await config())).toMatchObject({
      'actor_rollout_ref.rollout.n': 1,
      'actor_rollout_ref.actor.ppo_max_token_len_per_gpu': 12_288,
      'trainer.n_gpus_per_node': 4,
      'trainer.total_epochs': 1,
    })
    expect(settings.limits.maxTurns).toBe(8)
    expect(settings.reward).toMatchObject({ name: 'gaia_reward_func', path: expect.stringMatching(/gaia_reward_function\.py$/) })
    expect(agentFile).toMatch(/train_gaia_with_aworld_verl\/agent\.yaml$/)
  })

  it('give way to arguments', async () => {
    const config = await readVerlConfig(publishedOverrides(), {
      verl: readWithExcerpt,
      arguments: ['actor_rollout_ref.rollout.n=8', 'rows=last'],
    })
    expect(config.problems).toEqual([])
    expect(config.keys.get('actor_rollout_ref.rollout.n')?.value).toBe(8)
    expect(config.settings.rows).toBe('last')
  })
})

describe('a tree', () => {
  it('is the same from YAML, JSON, an object and overrides', async () => {
    const yaml = join(directory, 'grpo_trainer.yaml')
    const json = join(directory, 'grpo_trainer.json')
    writeFileSync(yaml, 'actor_rollout_ref:\n  rollout: {n: 4, name: vllm}\ntrainer: {logger: console}\n')
    writeFileSync(json, '{"actor_rollout_ref": {"rollout": {"n": 4, "name": "vllm"}}, "trainer": {"logger": "console"}}')
    const object = { 'actor_rollout_ref.rollout': { n: 4, name: 'vllm' }, trainer: { logger: 'console' } }
    const list = ['actor_rollout_ref.rollout.n=4', 'actor_rollout_ref.rollout.name=vllm', 'trainer.logger=console']
    for (const source of [yaml, json, object, list]) {
      expect(valuesOf(await readVerlConfig(source, { verl: readWithExcerpt }))).toEqual({
        'actor_rollout_ref.rollout.n': 4,
        'actor_rollout_ref.rollout.name': 'vllm',
        'trainer.logger': 'console',
      })
    }
  })

  it('is taken as given where it is complete and blank where we fill it', async () => {
    const config = await readVerlConfig({
      data: { train_files: null, val_files: '' },
      actor_rollout_ref: { rollout: { agent: { agent_loop_config_path: null } } },
      custom_reward_function: { path: '', name: null },
      trainer: { default_local_dir: null },
    })
    expect([...config.keys.keys(), ...config.problems, ...config.notes]).toEqual([])
  })

  it.each([
    [
      { actor_rollout_ref: { rollout: { m: 8 } } },
      'actor_rollout_ref.rollout.m (the configuration) is no key of verl 0.9.1. Did you mean "actor_rollout_ref.rollout.n"?',
    ],
    [{ trainer: { total_epoch: 1 } }, 'Did you mean "trainer.total_epochs"?'],
    [{ row: 'last' }, '"row" is no key of the configuration. Did you mean "rows"?'],
    [['row=last'], '"row" is no key of the configuration. Did you mean "rows"?'],
    [{ aworldTrain: { rows: 'last', limits: {} } }, 'its keys stand at the top. Write rows, limits there.'],
    [{ verl: { aworldTrain: { rows: 'last' } } }, 'its keys stand at the top. Write rows there.'],
    [{ 'aworldTrain.rows': 'last' }, 'its keys stand at the top. Write rows there.'],
    [['aworldTrain.rows=last'], 'write rows=last'],
    [{ layout: { mode: 'decoupled' } }, 'layout.mode" is "decoupled": must be one of hybrid, colocated, standalone'],
    [{ training: { stratify: { key: 'kind', counts: { a: 1 } } } }, 'training.stratify cannot be rendered'],
    [{ training: { advantage: 'none' } }, 'training.advantage is "none", which verl does not have'],
    [{ actor_rollout_ref: { rollout: { do_sample: false } } }, 'is not read by the V1 trainer, which always samples'],
    [{ actor_rollout_ref: { rollout: { agent: { agent_loop_manager_class: 'a.B' } } } }, 'would take the place of the loop'],
    [{ actor_rollout_ref: { rollout: { chat_scheduler: 'x.Y' } } }, 'there is no such setting since verl 0.5.0'],
    [{ async_training: { staleness_threshold: 0.5 } }, 'async_training.staleness_threshold is 0.5'],
    [['~trainer.nnodes'], 'removes a key'],
    ['.', 'EISDIR'],
  ])('%j is refused', async (source, message) => {
    expect((await readVerlConfig(source as never, { verl: readWithExcerpt })).problems.join('\n')).toContain(message)
  })

  it('takes a key that no file of verl names, and says so and where one of that name is', async () => {
    const { problems, notes, keys } = await readVerlConfig({ trainer: { lr: 1 } }, { verl: readWithExcerpt })
    expect([problems, keys.get('trainer.lr')?.value]).toEqual([[], 1])
    expect(notes.join()).toMatch(/trainer\.lr .* is added all the same\. verl has actor_rollout_ref\.actor\.optim\.lr\./)
  })

  it('has what plus signs ask for added, near as another key may be', async () => {
    const { problems, keys } = await readVerlConfig({ '++actor_rollout_ref.rollout.m': 8 }, { verl: readWithExcerpt })
    expect([problems, keys.get('actor_rollout_ref.rollout.m')?.value]).toEqual([[], 8])
  })

  it('is read without verl as far as that goes', async () => {
    const { problems, verl, keys, settings } = await readVerlConfig(['trainer.nnode=1', 'rows=last'])
    expect([problems, verl, keys.get('trainer.nnode')?.value, settings.rows]).toEqual([[], null, 1, 'last'])
  })

  it('names every problem at once, and the file', async () => {
    const file = join(directory, 'bad.yaml')
    writeFileSync(file, 'trainer: {nnode: 1}\nrows: none\nconcurency: 1\n')
    const { problems } = await readVerlConfig('bad.yaml', { verl: readWithExcerpt, baseDirectory: directory })
    expect(problems).toHaveLength(3)
    for (const problem of problems) expect(problem).toMatch(/^bad\.yaml: /)
    expect((await readVerlConfig(join(directory, 'gone.yaml'))).problems.join()).toMatch(/there is no such file/)
    expect((await readVerlConfig(join(directory, 'gone.sh'))).problems.join()).toMatch(/there is no such file/)
  })

  it.each([
    ['custom_reward_function.reward_fn_name', 'f', 'reward', 'name'],
    ['custom_reward_function.path', 'r.py', 'reward', 'path'],
  ])('%s is ours', async (key, value, section, member) => {
    const { settings, keys } = await readVerlConfig({ [key]: value }, { verl: readWithExcerpt })
    if (member === 'path') expect((settings as never)[section]).toHaveProperty(member, value)
    expect(keys.size).toBe(0)
  })

  it.each([
    [{ 'reward_model.reward_manager': 'dapo' }, { 'reward.reward_manager.name': 'dapo' }],
    [{ 'reward_model.rollout.name': 'vllm' }, { 'reward.reward_model.rollout.name': 'vllm' }],
    [{ 'reward_model.model.path': 'x' }, { 'reward.reward_model.model_path': 'x' }],
    [{ 'actor_rollout_ref.actor.grad_clip': 0.5 }, { 'actor_rollout_ref.actor.optim.clip_grad': 0.5 }],
    [
      { 'actor_rollout_ref.actor.grad_clip': 0.5, 'actor_rollout_ref.actor.optim.clip_grad': 0.7 },
      { 'actor_rollout_ref.actor.optim.clip_grad': 0.7 },
    ],
    [
      { 'actor_rollout_ref.actor.clip_ratio': 0.1, 'actor_rollout_ref.actor.clip_ratio_high': 0.3 },
      {
        'actor_rollout_ref.actor.clip_ratio': 0.1,
        'actor_rollout_ref.actor.clip_ratio_high': 0.3,
        'actor_rollout_ref.actor.clip_ratio_low': 0.1,
      },
    ],
    [
      { 'actor_rollout_ref.actor.tis_imp_ratio_cap': 2 },
      { 'algorithm.rollout_correction.rollout_is_threshold': 2, 'algorithm.rollout_correction.rollout_is': 'token' },
    ],
    [{ 'ray_init.num_cpus': 32 }, { 'ray_kwargs.ray_init.num_cpus': 32 }],
    [{ 'trainer.profile_steps': [1] }, { 'global_profiler.steps': [1] }],
  ])('%j is brought to its place of today', async (source, expected) => {
    const config = await readVerlConfig(source, { verl: readWithExcerpt })
    expect(config.problems).toEqual([])
    expect(config.notes.length).toBeGreaterThan(0)
    expect(valuesOf(config)).toEqual(expected)
  })

  it('leaves the reward to verl when told to', async () => {
    const config = await readVerlConfig({ 'custom_reward_function.path': 'r.py', reward: { native: true } })
    expect(valuesOf(config)).toEqual({ 'reward.custom_reward_function.path': 'r.py' })
  })
})

describe('our general terms', () => {
  it('become keys of verl', async () => {
    const config = await readVerlConfig({
      model: { path: './model' },
      training: {
        steps: 12,
        promptsPerStep: 16,
        samplesPerPrompt: 8,
        promptsPerUpdate: 8,
        passes: 2,
        advantage: 'group-relative-unscaled',
        learningRate: 1e-3,
        warmupSteps: 5,
        finalLearningRateFraction: 0.2,
        betas: [0.9, 0.98],
        klCoefficient: 0,
        aggregation: 'sequence-mean',
        checkpointEvery: null,
        evaluateEvery: 4,
      },
      sampling: { temperature: 1, topK: 0, maxTokens: 128 },
      evaluation: { temperature: 0, samplesPerPrompt: 2, greedy: true },
      limits: { maxTurns: 6 },
      data: { promptKey: 'question', max_prompt_length: 256 },
      seed: 7,
    })
    expect(config.problems).toEqual([])
    expect(valuesOf(config)).toMatchInlineSnapshot(`
      {
        "actor_rollout_ref.actor.data_loader_seed": 7,
        "actor_rollout_ref.actor.fsdp_config.seed": 7,
        "actor_rollout_ref.actor.loss_agg_mode": "seq-mean-token-mean",
        "actor_rollout_ref.actor.optim.betas": [
          0.9,
          0.98,
        ],
        "actor_rollout_ref.actor.optim.lr": 0.001,
        "actor_rollout_ref.actor.optim.lr_scheduler_type": "cosine",
        "actor_rollout_ref.actor.optim.lr_warmup_steps": 5,
        "actor_rollout_ref.actor.optim.min_lr_ratio": 0.2,
        "actor_rollout_ref.actor.ppo_epochs": 2,
        "actor_rollout_ref.actor.ppo_mini_batch_size": 8,
        "actor_rollout_ref.actor.use_kl_loss": false,
        "actor_rollout_ref.model.path": "./model",
        "actor_rollout_ref.rollout.n": 8,
        "actor_rollout_ref.rollout.seed": 7,
        "actor_rollout_ref.rollout.temperature": 1,
        "actor_rollout_ref.rollout.top_k": -1,
        "actor_rollout_ref.rollout.val_kwargs.n": 2,
        "actor_rollout_ref.rollout.val_kwargs.temperature": 0,
        "algorithm.adv_estimator": "grpo",
        "algorithm.norm_adv_by_std_in_grpo": false,
        "data.max_prompt_length": 256,
        "data.prompt_key": "question",
        "data.seed": 7,
        "data.train_batch_size": 16,
        "trainer.test_freq": 4,
        "trainer.total_training_steps": 12,
      }
    `)
    expect(config.settings).toMatchObject({ limits: { maxTurns: 6 }, maxCompletionTokens: 128, seed: 7 })
    expect(config.notes.join('\n')).toMatch(/cosine/)
  })

  it("give way to verl's own key", async () => {
    const config = await readVerlConfig({ training: { samplesPerPrompt: 8 }, actor_rollout_ref: { rollout: { n: 4 } } })
    expect(config.keys.get('actor_rollout_ref.rollout.n')).toMatchObject({ value: 4, origin: 'user' })
  })

  it('may stand in the section of verl, where they win for it alone', async () => {
    const config = await readVerlConfig({
      concurrency: 8,
      training: { steps: 2, passes: 2 },
      verl: { concurrency: 16, training: { steps: 3 }, data: { shuffle: false }, 'trainer.nnodes': 2 },
    })
    expect(config.settings.concurrency).toBe(16)
    expect(valuesOf(config)).toEqual({
      'trainer.total_training_steps': 3,
      'actor_rollout_ref.actor.ppo_epochs': 2,
      'data.shuffle': false,
      'trainer.nnodes': 2,
    })
  })

  it('refuses groups ahead of their step, which verl forms', async () => {
    const config = await readVerlConfig({ training: { maxStaleness: 1 } })
    expect(config.problems).toEqual([expect.stringMatching(/^training\.maxStaleness is 1, .* the framework forms its groups itself/)])
  })

  it('refuses steps that are filled and groups that end early, and names what verl has for it', async () => {
    const { problems } = await readVerlConfig({ training: { firstSamples: 4, solvedReward: 2, teachingPrompts: 8, maxPrompts: 32 } })
    const own = "Leave it out, and set verl's algorithm.filter_groups.enable, which draws until enough groups have rewards that differ."
    expect(problems.map((problem) => [problem.split(',')[0], problem.endsWith(own)])).toEqual([
      ['training.firstSamples is 4', false],
      ['training.solvedReward is 2', false],
      ['training.teachingPrompts is 8', true],
      ['training.maxPrompts is 32', true],
    ])
  })
})
