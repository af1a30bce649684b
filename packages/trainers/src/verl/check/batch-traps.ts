import type { Trap, TrapContext } from './trap.ts'

const actor = 'actor_rollout_ref.actor'
const rollout = 'actor_rollout_ref.rollout'

/** Rows of one update: verl pads a batch to a multiple of it (verl/trainer/ppo/v1/trainer_base.py, 0.9.1). */
const rowsOfUpdate = ({ number }: TrapContext) => number(`${actor}.ppo_mini_batch_size`) * number(`${rollout}.n`)
/** Ranks that share the rows of an update. */
const ranks = ({ number }: TrapContext) =>
  Math.max(
    1,
    (number('trainer.nnodes') * number('trainer.n_gpus_per_node')) / Math.max(1, number(`${actor}.ulysses_sequence_parallel_size`)),
  )
const isDynamic = ({ at }: TrapContext) => at(`${actor}.use_dynamic_bsz`) === true
const usesGroups = ({ at }: TrapContext) =>
  ['grpo', 'grpo_passk', 'rloo', 'opo', 'gpg', 'grpo_vectorized', 'rloo_vectorized'].includes(String(at('algorithm.adv_estimator')))

const isGroupOfOne = (context: TrapContext) => usesGroups(context) && context.number(`${rollout}.n`) < 2
const samplesTerm = 'training.samplesPerPrompt'
/**
 * Whether our own key sets the size of groups, which means that samples are compared. verl's key may ask for groups of one, as published
 * scripts do.
 */
const isOurs = ({ keys }: TrapContext) => keys.get(`${rollout}.n`)?.why === samplesTerm

const divides = (name: string, path: string): Trap => ({
  name,
  severity: 'error',
  check: (context) => {
    const size = context.at(path)
    if (isDynamic(context) || typeof size !== 'number') return null
    const each = rowsOfUpdate(context) / ranks(context)
    if (each % size === 0) return null
    return `${path} is ${size}, which does not divide the ${each} rows that an update has on each rank (ppo_mini_batch_size ${context.number(`${actor}.ppo_mini_batch_size`)} × n ${context.number(`${rollout}.n`)} / ${ranks(context)}); verl stops at the first update. Make it a divisor, or set ${actor}.use_dynamic_bsz to true.`
  },
})

/** Traps of the sizes of batches, groups and updates. */
export const batchTraps: readonly Trap[] = [
  {
    name: 'group-of-one',
    severity: 'warning',
    check: (context) =>
      isGroupOfOne(context) && !isOurs(context)
        ? `${rollout}.n is ${context.number(`${rollout}.n`)} with ${context.at('algorithm.adv_estimator')}: a group of one has no mean to compare with, its advantage is its raw reward, and nothing of use is learnt. Set it to 8.`
        : null,
  },
  {
    name: 'one-sample-per-prompt',
    severity: 'error',
    check: (context) =>
      isGroupOfOne(context) && isOurs(context)
        ? `${samplesTerm} is 1, and ${context.at('algorithm.adv_estimator')} compares the samples of a prompt with each other: nothing of use would be learnt. Set it to 8, or set algorithm.adv_estimator to one that needs no group.`
        : null,
  },
  {
    name: 'mini-batch-larger-than-batch',
    severity: 'error',
    check: ({ number }) =>
      number(`${actor}.ppo_mini_batch_size`) > number('data.train_batch_size')
        ? `${actor}.ppo_mini_batch_size is ${number(`${actor}.ppo_mini_batch_size`)}, more than the ${number('data.train_batch_size')} prompts of data.train_batch_size: an update would be padded with rows that train nothing. Make it at most that.`
        : null,
  },
  {
    name: 'mini-batch-does-not-divide',
    severity: 'warning',
    check: ({ number }) => {
      const [batch, mini] = [number('data.train_batch_size'), number(`${actor}.ppo_mini_batch_size`)]
      return mini > 0 && mini < batch && batch % mini !== 0
        ? `data.train_batch_size ${batch} is no multiple of ${actor}.ppo_mini_batch_size ${mini}; the last update of a step is filled with rows that train nothing. Make it a divisor.`
        : null
    },
  },
  divides('micro-batch-does-not-divide', `${actor}.ppo_micro_batch_size_per_gpu`),
  divides('log-prob-micro-batch-does-not-divide', `${rollout}.log_prob_micro_batch_size_per_gpu`),
  {
    name: 'fewer-rows-than-a-batch',
    severity: 'error',
    check: ({ run, number }) =>
      run.train && run.train.rows < number('data.train_batch_size')
        ? `data.train_batch_size is ${number('data.train_batch_size')}, and there are ${run.train.rows} training rows; verl drops the batch that is not full, and has no step to do. Make it at most ${run.train.rows}.`
        : null,
  },
  {
    name: 'steps-beyond-epochs',
    severity: 'error',
    check: ({ at, number, run }) => {
      const steps = at('trainer.total_training_steps')
      if (typeof steps !== 'number' || !run.train) return null
      const batches = Math.floor(run.train.rows / number('data.train_batch_size'))
      const reach = batches * number('trainer.total_epochs')
      return reach > 0 && reach < steps
        ? `trainer.total_training_steps is ${steps}, and ${number('trainer.total_epochs')} epochs of ${batches} batches end after ${reach}. Set trainer.total_epochs to ${Math.ceil(steps / batches)}.`
        : null
    },
  },
  {
    name: 'dynamic-batch-shorter-than-a-row',
    severity: 'error',
    check: (context) => {
      if (!isDynamic(context)) return null
      const longest = context.number('data.max_prompt_length') + context.number('data.max_response_length')
      const room =
        context.number(`${actor}.ppo_max_token_len_per_gpu`) * Math.max(1, context.number(`${actor}.ulysses_sequence_parallel_size`))
      return room < longest
        ? `${actor}.ppo_max_token_len_per_gpu is ${context.number(`${actor}.ppo_max_token_len_per_gpu`)}, and a row may have ${longest} tokens (max_prompt_length + max_response_length); the update stops at the first such row. Make it at least ${longest}.`
        : null
    },
  },
  {
    name: 'several-updates-from-several-rows',
    severity: 'warning',
    check: ({ config, number }) =>
      config.settings.rows === 'all' && number(`${actor}.ppo_epochs`) > 1
        ? `rows is "all" with ppo_epochs ${number(`${actor}.ppo_epochs`)}: rollouts of several conversations make more rows, and so more updates in a step than ppo_epochs × train_batch_size / ppo_mini_batch_size. Set rows to "last" for one row a rollout.`
        : null,
  },
]
