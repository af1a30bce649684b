import { didYouMean } from '@aworld-train/core'
import { isTree, type KeyTree, leaves, valueAt } from '@aworld-train/training'
import { formatOverride } from './hydra-override.ts'
import { ownKeys } from './own-config.ts'
import type { VerlKey } from './verl-key.ts'

/**
 * `listed`: in verl's YAML. `added`: in a mapping that accepts any key, so that an override needs `+`. `group`: chooses a file of Hydra.
 */
export type KeyKind = 'listed' | 'added' | 'group' | 'unknown'

/** Arguments of `ray.init`, of which verl's YAML names two. */
const open = 'ray_kwargs.ray_init.'

/** Whether an override chooses a file of a configuration group, such as `model_engine=megatron`. */
export const isGroup = (path: string) => path === 'model_engine' || /[@/]/.test(path)

/** The kind of a dotted path in verl's own tree, which has its references. */
export function kindOfKey(defaults: KeyTree, path: string): KeyKind {
  if (isGroup(path)) return 'group'
  if (valueAt(defaults, path) !== undefined) return 'listed'
  const parts = path.split('.')
  const above = parts.slice(1).map((_, depth) => valueAt(defaults, parts.slice(0, depth + 1).join('.')))
  // An empty mapping is passed to vLLM, Hugging Face or a class of the user's. A reference stands for another mapping.
  const takesAny = above.some(
    (each) => each === null || (typeof each === 'string' && each.startsWith('${')) || (isTree(each) && Object.keys(each).length === 0),
  )
  return takesAny || path.startsWith(open) ? 'added' : 'unknown'
}

/** ` Did you mean "…"?` for a path that differs from one of verl's by a letter or two, or nothing. */
export function suggestKey(defaults: KeyTree, path: string): string {
  const parts = path.split('.')
  for (let depth = parts.length - 1; depth >= 0; depth--) {
    const parent = parts.slice(0, depth).join('.')
    const place = depth === 0 ? defaults : valueAt(defaults, parent)
    if (!isTree(place)) continue
    const near = didYouMean(parts[depth]!, [...Object.keys(place), ...(depth === 0 ? ownKeys : [])])
    const rest = parts.slice(depth + 1)
    return near.replace(/"(.+)"/, (_, name: string) => `"${[parent, name, ...rest].filter(Boolean).join('.')}"`)
  }
  return ''
}

/** ` verl has ….` for a name that is elsewhere in verl's tree, or nothing. */
export function elsewhere(defaults: KeyTree, path: string): string {
  const last = path.split('.').at(-1)!
  const [same] = [...leaves(defaults)].map(([each]) => each).filter((each) => each.endsWith(`.${last}`) && !each.startsWith('critic'))
  return same ? ` verl has ${same}.` : ''
}

/** Formats one override. It begins with `++` if verl's YAML does not name the key, so that Hydra still refuses unknown keys elsewhere. */
export function formatKey(defaults: KeyTree, { path, value }: Pick<VerlKey, 'path' | 'value'>): string {
  const kind = kindOfKey(defaults, path)
  return formatOverride(path, value, kind === 'listed' || kind === 'group' ? '' : '++')
}
