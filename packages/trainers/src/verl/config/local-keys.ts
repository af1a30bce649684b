import { didYouMean } from '@aworld-train/core'
import { type KeyTranslator, type KeyTree, leaves, setAt, type TranslatedKeys } from '@aworld-train/training'
import { parse } from 'yaml'

type Convert = (value: unknown, context: Context) => void

interface Context {
  readonly key: string
  readonly values: ReadonlyMap<string, unknown>
  set(path: string, value: unknown): void
  problem(message: string): void
  warn(message: string): void
}

/** Copies a value to one of our keys. */
const to =
  (path: string, convert: (value: unknown) => unknown = (value) => value): Convert =>
  (value, { set }) =>
    set(path, convert(value))

/** A key without effect here. It may only have a neutral value. */
const only =
  (neutral: readonly unknown[], why: string): Convert =>
  (value, { key, problem }) => {
    if (!neutral.includes(value))
      problem(`${key} is ${JSON.stringify(value)}, which this engine cannot do (${why}); set it to ${JSON.stringify(neutral[0])}.`)
  }

/** Translates a name of the framework to one of ours. */
const oneOf =
  (path: string, words: Readonly<Record<string, unknown>>): Convert =>
  (value, { key, set, problem }) => {
    if (typeof value === 'string' && Object.hasOwn(words, value)) set(path, words[value])
    else problem(`${key} is ${JSON.stringify(value)}; this engine knows ${Object.keys(words).join(', ')}.`)
  }

const unlessNegative = (value: unknown) => (typeof value === 'number' && value <= 0 ? null : value)
const topK = (value: unknown) => (typeof value === 'number' && value < 0 ? 0 : value)
/** Reads files from `['a.parquet']`, as shells write it, from a path, or from a list. */
const files = (value: unknown) => {
  const list: unknown = typeof value === 'string' && value.trim().startsWith('[') ? parse(value) : value
  return list === null ? [] : Array.isArray(list) ? list : [list]
}
/** Loggers of the engine in the box: the terminal, `events.jsonl`, and TensorBoard's files. */
const ownLoggers: readonly unknown[] = ['console', 'file', 'tensorboard']
const actor = 'actor_rollout_ref.actor'
const rollout = 'actor_rollout_ref.rollout'

const rows: Readonly<Record<string, Convert>> = {
  'algorithm.adv_estimator': (value, context) => {
    const scaled = context.values.get('algorithm.norm_adv_by_std_in_grpo') !== false
    oneOf('training.advantage', { grpo: scaled ? 'group-relative' : 'group-relative-unscaled', rloo: 'leave-one-out' })(value, context)
  },
  'algorithm.norm_adv_by_std_in_grpo': () => {},
  'algorithm.use_kl_in_reward': only([false], 'the KL term is part of the loss'),
  'algorithm.filter_groups.enable': only([false], 'training.teachingPrompts draws others in place of groups whose rewards are equal'),
  'algorithm.rollout_correction.rollout_is': only([null, false], 'there is no importance correction'),
  'algorithm.rollout_correction.rollout_rs': only([null, false], 'there is no rejection of samples'),
  'data.train_files': to('data.trainFiles', files),
  'data.val_files': to('data.testFiles', files),
  'data.prompt_key': to('data.promptKey'),
  'data.train_batch_size': to('training.promptsPerStep'),
  'data.max_response_length': to('sampling.maxTokens'),
  'data.max_prompt_length': (value, { values, set }) => {
    const response = values.get('data.max_response_length')
    if (typeof value === 'number' && typeof response === 'number') set('training.maxSampleTokens', value + response)
  },
  'data.train_max_samples': only([-1, null], 'all tasks are used'),
  'data.val_max_samples': only([-1, null], 'all tasks are used'),
  'data.sampler.class_path': only([null], 'tasks are drawn in a shuffled order'),
  'data.seed': (value, { set }) => value !== null && set('seed', value),
  'data.shuffle': only([true], 'tasks are always drawn in a shuffled order'),
  'data.custom_cls.path': only([null], 'datasets are read by our own reader'),
  'actor_rollout_ref.model.path': to('model.path'),
  'actor_rollout_ref.model.lora_rank': only([0], 'all weights are trained'),
  [`${rollout}.n`]: to('training.samplesPerPrompt'),
  [`${rollout}.temperature`]: to('sampling.temperature'),
  [`${rollout}.top_p`]: to('sampling.topP'),
  [`${rollout}.top_k`]: to('sampling.topK', topK),
  [`${rollout}.min_p`]: only([0, null], 'truncated sampling cannot be trained'),
  [`${rollout}.repetition_penalty`]: only([1, null], 'tokens are drawn from the policy as it is'),
  [`${rollout}.do_sample`]: only([true], 'rollouts are sampled'),
  [`${rollout}.val_kwargs.n`]: to('evaluation.samplesPerPrompt'),
  [`${rollout}.val_kwargs.temperature`]: (value, { values, set }) => {
    set('evaluation.temperature', values.get(`${rollout}.val_kwargs.do_sample`) === false ? 0 : value)
  },
  [`${rollout}.val_kwargs.do_sample`]: (value, { set }) => value === false && set('evaluation.temperature', 0),
  [`${rollout}.val_kwargs.top_p`]: to('evaluation.topP'),
  [`${rollout}.val_kwargs.top_k`]: to('evaluation.topK', topK),
  [`${rollout}.multi_turn.max_assistant_turns`]: (value, context) => setMaxTurns(value, context),
  [`${rollout}.multi_turn.max_user_turns`]: (value, context) => setMaxTurns(typeof value === 'number' ? value + 1 : value, context),
  [`${actor}.optim.lr`]: to('training.learningRate'),
  [`${actor}.optim.lr_warmup_steps`]: (value, { set }) => typeof value === 'number' && value >= 0 && set('training.warmupSteps', value),
  [`${actor}.optim.lr_warmup_steps_ratio`]: (value, { values, set }) => {
    const steps = values.get(`${actor}.optim.lr_warmup_steps`)
    if (!(typeof steps === 'number' && steps >= 0)) set('training.warmupFraction', value)
  },
  [`${actor}.optim.weight_decay`]: to('training.weightDecay'),
  [`${actor}.optim.betas`]: to('training.betas'),
  [`${actor}.optim.clip_grad`]: to('training.maxGradNorm'),
  [`${actor}.optim.lr_scheduler_type`]: only(['constant'], 'the rate stays after the warm-up'),
  [`${actor}.optim.warmup_style`]: only(['constant', null], 'the rate stays after the warm-up'),
  [`${actor}.grad_clip`]: to('training.maxGradNorm'),
  [`${actor}.clip_ratio`]: (value, { values, set }) => {
    if (!values.has(`${actor}.clip_ratio_low`)) set('training.clipLow', value)
    if (!values.has(`${actor}.clip_ratio_high`)) set('training.clipHigh', value)
  },
  [`${actor}.clip_ratio_low`]: to('training.clipLow'),
  [`${actor}.clip_ratio_high`]: to('training.clipHigh'),
  [`${actor}.ppo_epochs`]: to('training.passes'),
  [`${actor}.ppo_mini_batch_size`]: (value, { values, set, problem }) => {
    const prompts = values.get('data.train_batch_size')
    if (typeof value === 'number' && typeof prompts === 'number' && value > prompts) {
      problem(`${actor}.ppo_mini_batch_size (${value}) is larger than data.train_batch_size (${prompts}); make it at most that.`)
    } else set('training.promptsPerUpdate', value)
  },
  [`${actor}.loss_agg_mode`]: oneOf('training.aggregation', { 'token-mean': 'token-mean', 'seq-mean-token-mean': 'sequence-mean' }),
  [`${actor}.policy_loss.loss_mode`]: only(['vanilla'], 'the loss is PPO-clip'),
  [`${actor}.shuffle`]: only([false], 'groups enter an update in the order of their tasks'),
  [`${actor}.entropy_coeff`]: to('training.entropyCoefficient'),
  [`${actor}.use_kl_loss`]: (value, { values, set }) =>
    value === true && set('training.klCoefficient', values.get(`${actor}.kl_loss_coef`) ?? 0.001),
  [`${actor}.kl_loss_coef`]: () => {},
  [`${actor}.kl_loss_type`]: (value, context) => {
    if (context.values.get(`${actor}.use_kl_loss`) === true) only(['low_var_kl', 'k3'], 'the KL estimate is k3')(value, context)
  },
  'trainer.total_epochs': to('training.epochs'),
  'trainer.total_training_steps': to('training.steps'),
  'trainer.save_freq': to('training.checkpointEvery', unlessNegative),
  'trainer.test_freq': to('training.evaluateEvery', unlessNegative),
  'trainer.val_before_train': to('evaluation.before'),
  'trainer.logger': (value, { key, set, warn }) => {
    const loggers = files(value)
    set(
      'logging',
      loggers.filter((logger) => logger === 'tensorboard'),
    )
    const others = loggers.filter((logger) => !ownLoggers.includes(logger))
    if (others.length > 0)
      warn(
        `${key} has ${others.join(', ')}, which the engine in the box does not log to; "tensorboard" writes event files that others read.`,
      )
  },
  'trainer.project_name': to('projectName'),
  'trainer.experiment_name': to('experimentName'),
  'trainer.critic_warmup': only([0], 'there is no critic'),
  'trainer.val_only': only([false], 'use the eval command'),
  'custom_reward_function.path': to('reward.path'),
  'custom_reward_function.name': to('reward.name'),
  'reward.custom_reward_function.path': to('reward.path'),
  'reward.custom_reward_function.name': to('reward.name'),
  'reward_model.enable': only([false], 'a reward is a function'),
  'reward.reward_model.enable': only([false], 'a reward is a function'),
}

function setMaxTurns(value: unknown, { set, values }: Context): void {
  if (typeof value !== 'number') return
  const assistant = values.get(`${rollout}.multi_turn.max_assistant_turns`)
  const user = values.get(`${rollout}.multi_turn.max_user_turns`)
  const bounds = [value, assistant, typeof user === 'number' ? user + 1 : null].filter((each) => typeof each === 'number')
  set('limits.maxTurns', Math.min(...bounds))
}

/** Defaults of a framework's configuration. */
const defaults: KeyTree = { training: { warmupSteps: 0, finalLearningRateFraction: 1, clipLow: 0.2, clipHigh: 0.2, betas: [0.9, 0.999] } }

/** Estimators without a critic. With them the critic's keys have no effect in the framework either. */
const withoutCritic: readonly unknown[] = ['grpo', 'rloo']

/**
 * Translates the keys that have a meaning for an engine of our own. Others are ignored, or refused if ignoring them would change the
 * training.
 */
function translate(tree: KeyTree): TranslatedKeys {
  const values = resolveReferences(new Map(leaves(tree)))
  const config: Record<string, unknown> = structuredClone(defaults) as Record<string, unknown>
  const problems: string[] = []
  const warnings: string[] = []
  const ignored: string[] = []
  const used = new Set<string>()
  const estimator = values.get('algorithm.adv_estimator')
  for (const [key, value] of values) {
    const convert = Object.hasOwn(rows, key) ? rows[key] : undefined
    if (convert) {
      used.add(key)
      convert(value, {
        key,
        values,
        set: (path, converted) => setAt(config, path.split('.'), converted),
        problem: (message) => problems.push(message),
        warn: (message) => warnings.push(message),
      })
    } else if (key.startsWith('critic.') && values.get('critic.enable') !== false && !withoutCritic.includes(estimator)) {
      problems.push(`${key} has no effect here: this engine has no critic. Set algorithm.adv_estimator to grpo, or leave the key out.`)
    } else {
      ignored.push(key)
      const parent = key.slice(0, key.lastIndexOf('.') + 1)
      const hint = didYouMean(
        key,
        Object.keys(rows).filter(
          (candidate) => candidate.startsWith(parent) && !values.has(candidate) && !candidate.slice(parent.length).includes('.'),
        ),
      )
      if (hint && isTypo(key, hint)) warnings.push(`${key} has no effect.${hint}`)
    }
  }
  if (estimator === undefined) warnings.push('algorithm.adv_estimator is not set; advantages are relative to the group, as with grpo.')
  return { config, problems, warnings, ignored: collapse(ignored, used) }
}

/** Whether a suggestion differs by a letter or two. Known keys of a framework differ by more. */
function isTypo(key: string, hint: string): boolean {
  const last = key.slice(key.lastIndexOf('.') + 1)
  const suggested = /([^."]+)"\?$/.exec(hint)?.[1] ?? ''
  return Math.abs(last.length - suggested.length) <= 2 && [...last].filter((letter) => !suggested.includes(letter)).length <= 1
}

const reference = /^\$\{(?:oc\.select:)?([\w.]+)(?:,\s*([^}]*))?\}$/

/**
 * Replaces `${a.b}` and `${oc.select:a.b,default}` by the values that they name, as OmegaConf does. A reference to nothing stays as it is.
 */
function resolveReferences(values: ReadonlyMap<string, unknown>): Map<string, unknown> {
  const resolve = (value: unknown, depth = 0): unknown => {
    const match = typeof value === 'string' ? reference.exec(value) : null
    if (!match || depth > values.size) return value
    if (values.has(match[1]!)) return resolve(values.get(match[1]!), depth + 1)
    return match[2] === undefined ? value : parse(match[2])
  }
  return new Map([...values].map(([path, value]) => [path, resolve(value)]))
}

/** Writes sibling leaves as `parent.*` if none of the parent's leaves is in `kept`, so that a list of keys stays short. */
function collapse(paths: readonly string[], kept: ReadonlySet<string>): string[] {
  const used = new Set([...kept].flatMap((path) => ancestors(path)))
  const shown = paths.map((path) => {
    const top = ancestors(path).find((ancestor) => !used.has(ancestor))
    return top === undefined || paths.filter((other) => other.startsWith(`${top}.`)).length < 3 ? path : `${top}.*`
  })
  return [...new Set(shown)]
}

/** `a.b.c` gives `a` and `a.b`. */
function ancestors(path: string): string[] {
  const parts = path.split('.')
  return parts.slice(1).map((_, i) => parts.slice(0, i + 1).join('.'))
}

/** Translates the configuration of a user of verl for the engine in the box. */
export const verlKeys: KeyTranslator = {
  sections: ['algorithm', 'actor_rollout_ref', 'critic', 'trainer', 'custom_reward_function', 'reward_model'],
  translate,
}
