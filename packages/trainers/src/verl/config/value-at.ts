import { isTree, type KeyTree } from '@aworld-train/training'

/** The value at a dotted path; `undefined` if there is none. */
export function valueAt(tree: KeyTree, path: string): unknown {
  return path.split('.').reduce<unknown>((value, key) => (isTree(value) ? value[key] : undefined), tree)
}
