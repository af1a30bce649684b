import { isTree, valueAt } from '@aworld-train/training'
import type { Trap, TrapContext } from './trap.ts'

const sampler = 'trainer.v1.sampler'

const isV1 = ({ at }: TrapContext) => at('trainer.use_v1') !== false
/** Whether the sampler is the bridge's, which works like verl's own and counts trained rollouts. */
const isOwnBuffer = ({ at }: TrapContext) => at(`${sampler}.custom_sampler.name`) === 'WholeGroupReplayBuffer'
const legacy = ['custom_reward_function', 'reward_model', 'sandbox_fusion'] as const

/** Traps of scoring rollouts and gathering their groups. */
export const groupTraps: readonly Trap[] = [
  {
    name: 'legacy-reward-keys',
    severity: 'error',
    check: ({ at }) => {
      const set = legacy.filter((key) => hasValue(at(key)))
      return set.length > 0
        ? `${set.join(' and ')} is set, which verl accepts since 0.9 and does not read. Move it to reward.${set[0]}.`
        : null
    },
  },
  {
    name: 'reward-manager-unused',
    severity: 'warning',
    check: ({ config, keys }) => {
      const set = ['reward.reward_manager.name', 'reward.reward_manager.source', 'reward.reward_kwargs'].filter(
        (key) => keys.get(key)?.origin === 'user' && keys.get(key)!.value !== valueAt(config.verl?.resolved ?? {}, key),
      )
      return set.length > 0 && !config.settings.reward.native
        ? `${set[0]} has no effect: every row comes with its reward. Set reward.native to true for verl's own reward manager.`
        : null
    },
  },
  {
    name: 'native-reward-without-workers',
    severity: 'error',
    check: ({ config, at }) =>
      config.settings.reward.native && at('reward.num_workers') === 0
        ? 'reward.native is true and reward.num_workers is 0: nobody would score. Leave reward.num_workers out.'
        : null,
  },
  {
    name: 'native-reward-without-function',
    severity: 'warning',
    check: ({ config, at }) =>
      config.settings.reward.native && at('reward.custom_reward_function.path') === null && at('reward.reward_model.enable') !== true
        ? 'reward.native is true without a reward function: verl knows the data_source of its own examples only, and every group fails with any other. Name one in reward.custom_reward_function.'
        : null,
  },
  {
    name: 'legacy-trainer',
    severity: 'error',
    check: (context) =>
      !isV1(context) && typeof context.config.settings.rows === 'string' && context.config.settings.rows !== 'last'
        ? `trainer.use_v1 is false, and that trainer takes one row of a rollout; set rows to "last", or leave use_v1 out.`
        : null,
  },
  {
    name: 'legacy-trainer-untested',
    severity: 'warning',
    check: (context) =>
      isV1(context)
        ? null
        : 'trainer.use_v1 is false: the trainer before V1 stops when one rollout fails, and was not tested. Leave it out.',
  },
  {
    name: 'survivors-are-trained',
    severity: 'warning',
    check: (context) => {
      const { at } = context
      const replaces = isOwnBuffer(context)
        ? at(`${sampler}.sampler_kwargs.replace_failed`) !== false
        : at(`${sampler}.custom_sampler.path`) !== null
      if (!isV1(context) || at('trainer.v1.trainer_mode') !== 'sync' || replaces) return null
      return `Groups with a failed rollout are trained on their survivors (${sampler}.sync_refill_failed_groups replaces groups without any row only), and the advantage of a single survivor is its raw reward. Set group.replaceFailed to true.`
    },
  },
  {
    name: 'filter-groups-and-own-buffer',
    severity: 'error',
    check: (context) =>
      context.at('algorithm.filter_groups.enable') === true &&
      context.at(`${sampler}.custom_sampler.path`) !== null &&
      !isOwnBuffer(context)
        ? `algorithm.filter_groups.enable has no effect with ${sampler}.custom_sampler; leave one of them out.`
        : null,
  },
  {
    name: 'sync-refill-needs-v1-sampler',
    severity: 'error',
    check: (context) =>
      isOwnBuffer(context) &&
      context.at('trainer.v1.trainer_mode') === 'sync' &&
      context.at(`${sampler}.sampler_kwargs.replace_failed`) !== false &&
      context.at(`${sampler}.sync_refill_failed_groups`) !== true
        ? `${sampler}.sync_refill_failed_groups is false, and WholeGroupReplayBuffer needs the single prompts that it makes the dataloader give. Set it to true.`
        : null,
  },
]

const hasValue = (value: unknown): boolean => (isTree(value) ? Object.values(value).some(hasValue) : value !== null && value !== undefined)
