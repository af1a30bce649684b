import { didYouMean } from '@aworld-train/core'
import { isTree, leaves } from '@aworld-train/training'
import { valueAt } from './omega.ts'
import { ownSections } from './own-config.ts'
import tested from './verl-0.9.1.json' with { type: 'json' }
import type { VerlSchema } from './verl-config.ts'

/** Defaults of verl 0.9.1, as `python -m aworld_train_bridge.verl.resolve_config` printed them. */
export const testedSchema: VerlSchema = tested

/** Mappings that take any key: verl hands them on to vLLM, Ray, Hugging Face or a class of the user's. */
const open = [
  'actor_rollout_ref.model.override_config',
  'actor_rollout_ref.rollout.engine_kwargs',
  'actor_rollout_ref.rollout.checkpoint_engine.engine_kwargs',
  'actor_rollout_ref.rollout.custom',
  'actor_rollout_ref.actor.optim.override_optimizer_config',
  'actor_rollout_ref.actor.fsdp_config.mixed_precision',
  'actor_rollout_ref.ref.fsdp_config.mixed_precision',
  'critic.model.override_config',
  'critic.optim.override_optimizer_config',
  'data.apply_chat_template_kwargs',
  'data.mm_processor_kwargs',
  'data.sampler',
  'data.datagen',
  'distillation.teacher_models',
  'global_profiler.global_tool_config',
  'ray_kwargs.ray_init',
  'reward.reward_kwargs',
  'reward.custom_reward_function.reward_kwargs',
  'reward.reward_model.rollout.engine_kwargs',
  'trainer.v1.sampler.sampler_kwargs',
  'trainer.v1.sync',
] as const

/** Keys that verl reads where they are and that no dataclass and no YAML names. */
const unlisted = ['data.cache_dir', 'data.chat_template_func', 'data.need_tools_kwargs', 'data.filter_prompts'] as const

/** `listed`: in verl's YAML. `added`: taken, but an override needs `+`. `group`: chooses a file of Hydra. */
export type KeyKind = 'listed' | 'added' | 'group' | 'unknown'

/** The kind of a dotted path in this verl. */
export function kindOfKey(schema: VerlSchema, path: string): KeyKind {
  if (path === 'model_engine' || /[@/]/.test(path)) return 'group'
  if (valueAt(schema.defaults, path) !== undefined) return 'listed'
  // The path lies below a reference to another mapping, such as rollout.mtp, which refers to that of the model.
  const parts = path.split('.')
  if (parts.some((_, depth) => depth > 0 && /^\$\{/.test(String(valueAt(schema.defaults, parts.slice(0, depth).join('.')) ?? ''))))
    return 'added'
  const within = (parent: string) => path === parent || path.startsWith(`${parent}.`)
  return open.some(within) || schema.extra.some(within) || unlisted.some(within) ? 'added' : 'unknown'
}

/** ` Did you mean "…"?` for a path that this verl does not have, or nothing. */
export function suggestKey(schema: VerlSchema, path: string): string {
  const parts = path.split('.')
  for (let depth = parts.length - 1; depth >= 0; depth--) {
    const parent = parts.slice(0, depth).join('.')
    const place = depth === 0 ? schema.defaults : valueAt(schema.defaults, parent)
    if (!isTree(place)) continue
    const near = didYouMean(parts[depth]!, [...Object.keys(place), ...(depth === 0 ? ownSections : [])])
    const rest = parts.slice(depth + 1)
    if (near) return near.replace(/"(.+)"/, (_, name: string) => `"${[parent, name, ...rest].filter(Boolean).join('.')}"`)
    break
  }
  const last = parts.at(-1)!
  const [same] = [...leaves(schema.defaults)]
    .map(([path]) => path)
    .filter((path) => path.endsWith(`.${last}`) && !path.startsWith('critic'))
  return same ? ` verl has ${same}.` : ''
}
