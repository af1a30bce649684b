import { type KeyTree, lossProblems, type SettingName, valueAt } from '@aworld-train/training'

/** One of our settings in verl's keys. */
export interface Rendered {
  readonly keys: readonly (readonly [path: string, value: unknown])[]
  /** A note for the user; the setting is not an error. */
  readonly note?: string
  readonly problem?: string | undefined
}

type Render = (value: unknown, term: string) => Rendered

const actor = 'actor_rollout_ref.actor'
const rollout = 'actor_rollout_ref.rollout'

const to =
  (...paths: string[]): Render =>
  (value) => ({ keys: paths.map((path) => [path, value]) })

const noEffect =
  (why: string): Render =>
  (_, term) => ({ keys: [], note: `${term} has no effect with verl: ${why}.` })

const frequency =
  (path: string): Render =>
  (value) => ({ keys: value === null ? [] : [[path, value]] })

/** Renderers by dotted path of our general configuration (`LocalConfig`). Any other setting stays with us, in `VerlSettings`. */
const terms: Readonly<Partial<Record<SettingName, Render>>> = {
  'training.steps': (value) => ({ keys: value === null ? [] : [['trainer.total_training_steps', value]] }),
  'training.epochs': to('trainer.total_epochs'),
  'training.promptsPerStep': to('data.train_batch_size'),
  'training.samplesPerPrompt': to(`${rollout}.n`),
  'training.passes': to(`${actor}.ppo_epochs`),
  'training.promptsPerUpdate': (value) => ({ keys: value === null ? [] : [[`${actor}.ppo_mini_batch_size`, value]] }),
  'training.advantage': (value, term) => {
    const forms: Record<string, Rendered['keys']> = {
      'group-relative': [
        ['algorithm.adv_estimator', 'grpo'],
        ['algorithm.norm_adv_by_std_in_grpo', true],
      ],
      'group-relative-unscaled': [
        ['algorithm.adv_estimator', 'grpo'],
        ['algorithm.norm_adv_by_std_in_grpo', false],
      ],
      'leave-one-out': [['algorithm.adv_estimator', 'rloo']],
    }
    const keys = typeof value === 'string' && Object.hasOwn(forms, value) ? forms[value] : undefined
    return keys
      ? { keys }
      : { keys: [], problem: `${term} is ${JSON.stringify(value)}, which verl does not have; use ${Object.keys(forms).join(', ')}.` }
  },
  'training.dropZeroVariance': noEffect('a group whose rewards are all alike has advantage 0 and trains nothing'),
  'training.stratify': (value, term) => ({
    keys: [],
    ...(value === null
      ? {}
      : {
          problem: `${term} cannot be rendered: verl draws prompts in a shuffled order. Leave it out, or name a sampler in data.sampler.class_path.`,
        }),
  }),
  'training.maxSampleTokens': (value) => ({ keys: value === null ? [] : [[`${rollout}.max_model_len`, value]] }),
  'training.clipLow': to(`${actor}.clip_ratio_low`),
  'training.clipHigh': to(`${actor}.clip_ratio_high`),
  'training.klCoefficient': (value) => ({
    keys: [
      [`${actor}.use_kl_loss`, typeof value === 'number' && value > 0],
      ...(value === 0 ? [] : [[`${actor}.kl_loss_coef`, value] as const]),
    ],
  }),
  'training.entropyCoefficient': to(`${actor}.entropy_coeff`),
  'training.aggregation': (value) => ({ keys: [[`${actor}.loss_agg_mode`, value === 'sequence-mean' ? 'seq-mean-token-mean' : value]] }),
  'training.loss': (loss) => ({ keys: [], problem: lossProblems({ loss }, 'verl', `${actor}.policy_loss.loss_mode`)[0] }),
  'training.learningRate': to(`${actor}.optim.lr`),
  'training.warmupSteps': to(`${actor}.optim.lr_warmup_steps`),
  'training.warmupFraction': (value) => ({ keys: value === null ? [] : [[`${actor}.optim.lr_warmup_steps_ratio`, value]] }),
  'training.finalLearningRateFraction': (value, term) =>
    value === 1
      ? { keys: [[`${actor}.optim.lr_scheduler_type`, 'constant']] }
      : {
          keys: [
            [`${actor}.optim.lr_scheduler_type`, 'cosine'],
            [`${actor}.optim.min_lr_ratio`, value],
          ],
          note: `${term} is rendered as a cosine that ends there: verl has no linear decay.`,
        },
  'training.weightDecay': to(`${actor}.optim.weight_decay`),
  'training.betas': to(`${actor}.optim.betas`),
  'training.epsilon': (value) => ({ keys: [[`${actor}.optim.override_optimizer_config.eps`, value]] }),
  'training.maxGradNorm': to(`${actor}.optim.clip_grad`),
  'training.checkpointEvery': frequency('trainer.save_freq'),
  'training.evaluateEvery': frequency('trainer.test_freq'),
  'training.logprobCheck.tokens': noEffect('it counts tokens of the engine in the box'),
  'sampling.temperature': to(`${rollout}.temperature`),
  'sampling.topP': to(`${rollout}.top_p`),
  'sampling.topK': (value) => ({ keys: [[`${rollout}.top_k`, value === 0 ? -1 : value]] }),
  'evaluation.temperature': to(`${rollout}.val_kwargs.temperature`),
  'evaluation.topP': to(`${rollout}.val_kwargs.top_p`),
  'evaluation.topK': (value) => ({ keys: [[`${rollout}.val_kwargs.top_k`, value === 0 ? -1 : value]] }),
  'evaluation.samplesPerPrompt': to(`${rollout}.val_kwargs.n`),
  'evaluation.before': to('trainer.val_before_train'),
  'evaluation.greedy': noEffect('it validates once, with evaluation.temperature'),
  'model.path': to('actor_rollout_ref.model.path'),
  'model.templateArguments': to('data.apply_chat_template_kwargs'),
  'data.trainFiles': to('data.train_files'),
  'data.testFiles': to('data.val_files'),
  'data.promptKey': to('data.prompt_key'),
  seed: (value) => ({
    keys: [
      ['data.seed', value],
      [`${rollout}.seed`, value],
      [`${actor}.fsdp_config.seed`, value],
      [`${actor}.data_loader_seed`, value],
    ],
  }),
}

/** Renders the user's general settings in verl's keys. Each key has the setting that it comes from. */
export function renderGeneralTerms(ownKeys: KeyTree): {
  readonly keys: readonly { readonly path: string; readonly value: unknown; readonly term: string }[]
  readonly notes: readonly string[]
  readonly problems: readonly string[]
} {
  const keys: { path: string; value: unknown; term: string }[] = []
  const notes: string[] = []
  const problems: string[] = []
  for (const [term, value, render] of entriesOf(ownKeys)) {
    const rendered = render(value, term)
    keys.push(...rendered.keys.map(([path, each]) => ({ path, value: each, term })))
    if (rendered.note) notes.push(rendered.note)
    if (rendered.problem) problems.push(rendered.problem)
  }
  return { keys, notes, problems }
}

function* entriesOf(ownKeys: KeyTree): Generator<[string, unknown, Render]> {
  for (const [term, render] of Object.entries(terms)) {
    const value = valueAt(ownKeys, term)
    if (value !== undefined) yield [term, value, render]
  }
}
