import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseLocalConfig as parse } from '@aworld-train/training'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { verlKeys } from './local-keys.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'aworld-train-config-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

function file(name: string, content: string | Uint8Array): string {
  const path = join(directory, name)
  writeFileSync(path, content)
  return path
}

const parseLocalConfig = (source: string | object) => parse(source, { translator: verlKeys })

describe('keys of verl before the engine in the box', () => {
  const published = `
algorithm: { adv_estimator: grpo, use_kl_in_reward: false, kl_ctrl: { kl_coef: 0.0 } }
data:
  train_files: "['/data/train.parquet']"
  val_files: /data/test.parquet
  return_raw_chat: true
  train_batch_size: 8
  max_prompt_length: 1024
  max_response_length: 2048
  filter_overlong_prompts: true
  truncation: error
actor_rollout_ref:
  model: { path: Qwen/Qwen3-4B, use_remove_padding: true, enable_gradient_checkpointing: true }
  actor:
    use_kl_loss: false
    kl_loss_coef: 0.0
    clip_ratio_low: 0.2
    clip_ratio_high: 0.28
    clip_ratio_c: 10.0
    optim: { lr: 1.0e-6, lr_warmup_steps: -1, lr_warmup_steps_ratio: 0.1, weight_decay: 0.1 }
    ppo_mini_batch_size: 4
    ppo_epochs: 2
    loss_agg_mode: seq-mean-token-mean
    entropy_coeff: 0.01
    grad_clip: 0.5
    fsdp_config: { param_offload: true, optimizer_offload: true, wrap: 1 }
  rollout:
    name: vllm
    n: 16
    temperature: 0.9
    top_p: 1
    top_k: -1
    val_kwargs: { n: 2, temperature: 1.0, top_p: 0.6, top_k: -1, do_sample: true }
    multi_turn: { max_user_turns: 8, max_assistant_turns: 6, format: hermes }
custom_reward_function: { path: ./reward.ts, name: gaiaRewardFunc }
trainer: { logger: console, save_freq: -1, test_freq: 5, total_epochs: 3, val_before_train: false, nnodes: 1, n_gpus_per_node: 1 }
`

  it('are read where they mean something here', () => {
    const { config } = parseLocalConfig(file('trainer.yaml', published))
    expect(config).toMatchObject({
      model: { path: 'Qwen/Qwen3-4B' },
      data: { trainFiles: ['/data/train.parquet'], testFiles: ['/data/test.parquet'] },
      reward: { path: './reward.ts', name: 'gaiaRewardFunc' },
      training: {
        promptsPerStep: 8,
        samplesPerPrompt: 16,
        promptsPerUpdate: 4,
        passes: 2,
        advantage: 'group-relative',
        aggregation: 'sequence-mean',
        clipLow: 0.2,
        clipHigh: 0.28,
        klCoefficient: 0,
        entropyCoefficient: 0.01,
        learningRate: 1e-6,
        warmupSteps: 0,
        warmupFraction: 0.1,
        finalLearningRateFraction: 1,
        weightDecay: 0.1,
        maxGradNorm: 0.5,
        maxSampleTokens: 3072,
        epochs: 3,
        checkpointEvery: null,
        evaluateEvery: 5,
      },
      sampling: { temperature: 0.9, topP: 1, topK: 0, maxTokens: 2048 },
      limits: { maxTurns: 6 },
      evaluation: { samplesPerPrompt: 2, temperature: 1, topP: 0.6, topK: 0, before: false },
    })
  })

  it('are reported once, whole sections together, where they do not', () => {
    const { ignored } = parseLocalConfig(file('trainer.yaml', published))
    expect(ignored).toContain('actor_rollout_ref.actor.fsdp_config.*')
    expect(ignored).toContain('data.truncation')
    expect(ignored).toContain('trainer.nnodes')
    expect(ignored).not.toContain('algorithm.adv_estimator')
    expect(new Set(ignored).size).toBe(ignored.length)
  })

  const base = { 'algorithm.adv_estimator': 'grpo' }

  it.each([
    ['console', [], []],
    ["['console','tensorboard']", ['tensorboard'], []],
    [['tensorboard', 'wandb', 'mlflow'], ['tensorboard'], [expect.stringMatching(/^trainer\.logger has wandb, mlflow, which/)]],
  ])('log as with verl: %j', (logger, logging, warnings) => {
    const parsed = parseLocalConfig({ ...base, trainer: { logger, project_name: 'gaia', experiment_name: 'qwen3' } })
    expect(parsed).toMatchObject({ config: { logging, projectName: 'gaia', experimentName: 'qwen3' }, warnings, ignored: [] })
  })

  it.each([
    [{ 'algorithm.adv_estimator': 'gae' }, 'algorithm.adv_estimator is "gae"; this engine knows grpo, rloo'],
    [{ 'critic.optim.lr': 1e-5, 'trainer.nnodes': 1 }, 'critic.optim.lr has no effect here'],
    [{ ...base, 'algorithm.use_kl_in_reward': true }, 'algorithm.use_kl_in_reward is true'],
    [{ ...base, 'algorithm.filter_groups.enable': true }, 'algorithm.filter_groups.enable is true'],
    [{ ...base, 'actor_rollout_ref.actor.loss_agg_mode': 'seq-mean-token-sum' }, 'this engine knows token-mean, seq-mean-token-mean'],
    [{ ...base, 'actor_rollout_ref.actor.optim.lr_scheduler_type': 'cosine' }, 'lr_scheduler_type is "cosine"'],
    [{ ...base, 'actor_rollout_ref.actor.use_kl_loss': true, 'actor_rollout_ref.actor.kl_loss_type': 'mse' }, 'kl_loss_type is "mse"'],
    [{ ...base, 'actor_rollout_ref.model.lora_rank': 8 }, 'lora_rank is 8'],
    [{ ...base, 'reward_model.enable': true }, 'reward_model.enable is true'],
    [{ ...base, 'data.train_batch_size': 2, 'actor_rollout_ref.actor.ppo_mini_batch_size': 4 }, 'is larger than data.train_batch_size'],
    [{ ...base, 'actor_rollout_ref.rollout.n': 'many' }, '"training.samplesPerPrompt" is "many"'],
  ])('%j is refused, since ignoring it would change the training', (config, message) => {
    expect(() => parseLocalConfig(config)).toThrow(message)
  })

  it.each([
    [{ ...base, 'algorithm.norm_adv_by_std_in_grpo': false }, { advantage: 'group-relative-unscaled' }],
    [{ 'algorithm.adv_estimator': 'rloo' }, { advantage: 'leave-one-out' }],
    [
      { ...base, 'actor_rollout_ref.actor.clip_ratio': 0.1, 'actor_rollout_ref.actor.clip_ratio_high': 0.3 },
      { clipLow: 0.1, clipHigh: 0.3 },
    ],
    [{ ...base, 'actor_rollout_ref.actor.use_kl_loss': true, 'actor_rollout_ref.actor.kl_loss_coef': 0.05 }, { klCoefficient: 0.05 }],
    [
      { ...base, 'actor_rollout_ref.actor.optim.lr_warmup_steps': 9, 'actor_rollout_ref.actor.optim.lr_warmup_steps_ratio': 0.5 },
      { warmupSteps: 9, warmupFraction: null },
    ],
    [
      { ...base, 'trainer.total_training_steps': 40, training: { passes: 3 } },
      { steps: 40, passes: 3 },
    ],
  ])('%j', (config, training) => {
    expect(parseLocalConfig(config).config.training).toMatchObject(training)
  })

  it('mean a greedy evaluation without do_sample, and no critic with grpo', () => {
    const { config, ignored } = parseLocalConfig({
      ...base,
      'actor_rollout_ref.rollout.val_kwargs': { temperature: 1, do_sample: false },
      'critic.optim.lr': 1,
    })
    expect(config.evaluation.temperature).toBe(0)
    expect(ignored).toEqual(['critic.optim.lr'])
  })

  it('may refer to each other as OmegaConf lets them', () => {
    const refer = (path: string) => `$\{${path}}`
    const { config } = parseLocalConfig({
      ...base,
      'data.train_batch_size': 6,
      'actor_rollout_ref.actor.ppo_mini_batch_size': refer('data.train_batch_size'),
      'actor_rollout_ref.rollout.n': refer('oc.select:data.group_size,5'),
      'data.max_response_length': refer('data.max_response_length'),
      'sampling.maxTokens': 9,
    })
    expect(config.training).toMatchObject({ promptsPerUpdate: 6, samplesPerPrompt: 5 })
    expect(config.sampling.maxTokens).toBe(9)
  })

  it('have a misspelt one pointed out', () => {
    const { warnings } = parseLocalConfig({ ...base, 'actor_rollout_ref.actor.ppo_epoch': 2 })
    expect(warnings).toEqual(['actor_rollout_ref.actor.ppo_epoch has no effect. Did you mean "actor_rollout_ref.actor.ppo_epochs"?'])
  })
})
