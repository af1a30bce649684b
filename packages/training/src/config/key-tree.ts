import { stringify } from 'yaml'

export type KeyTree = Readonly<Record<string, unknown>>

export function isTree(value: unknown): value is KeyTree {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Mappings whose keys are not ours: models such as `gpt-4.1`, variables, and a cluster's words such as `nvidia.com/gpu`. */
const foreignKeys = /(^|\.)(models|policies|executor\.(env|resources|options))$/

/** Expands `{ 'a.b': 1 }` to `{ a: { b: 1 } }`, as command-line overrides are written. Later keys win. `prefix` is the path of the tree. */
export function expandDots(tree: KeyTree, prefix = ''): KeyTree {
  const expanded: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(tree)) {
    const name = key.replace(/^\++/, '')
    const path = prefix ? `${prefix}.${name}` : name
    setAt(expanded, name.split('.'), isTree(value) && !foreignKeys.test(path) ? expandDots(value, path) : value)
  }
  return expanded
}

/** Leaves with their paths; an empty mapping is a leaf. A path is a list of keys, since a key such as `nvidia.com/gpu` has dots of its own. */
export function* leafPaths(tree: KeyTree, path: readonly string[] = []): Generator<readonly [path: readonly string[], value: unknown]> {
  for (const [key, value] of Object.entries(tree)) {
    if (isTree(value) && Object.keys(value).length > 0) yield* leafPaths(value, [...path, key])
    else yield [[...path, key], value]
  }
}

/** Leaves with their dotted paths. `prefix` is the path of the tree. */
export function* leaves(tree: KeyTree, prefix = ''): Generator<readonly [path: string, value: unknown]> {
  for (const [path, value] of leafPaths(tree, prefix ? [prefix] : [])) yield [path.join('.'), value]
}

/** The value at a dotted path; `undefined` if there is none. */
export const valueAt = (tree: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((value, key) => (isTree(value) ? value[key] : undefined), tree)

/** A number at a dotted path; `fallback` if there is none, or an interpolation. */
export function numberAt<Fallback>(tree: unknown, path: string, fallback: Fallback): number | Fallback {
  const value = valueAt(tree, path)
  return typeof value === 'number' ? value : fallback
}

/** Sets a value below `tree` and makes mappings on the way. Two mappings at one place are merged. */
export function setAt(tree: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [key, ...rest] = path as [string, ...string[]]
  const existing = tree[key]
  if (rest.length > 0) {
    const next = isTree(existing) ? (existing as Record<string, unknown>) : {}
    tree[key] = next
    setAt(next, rest, value)
  } else if (isTree(existing) && isTree(value)) {
    for (const [name, member] of Object.entries(value)) setAt(existing as Record<string, unknown>, [name], member)
  } else {
    tree[key] = value
  }
}

/** Copies a tree; functions in it are not copied. */
export function copyOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copyOf)
  if (isTree(value)) return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, copyOf(member)]))
  return value
}

/** A tree in YAML, with a function by its name. */
export const toYaml = (tree: KeyTree): string =>
  stringify(tree, (_key, value: unknown) => (typeof value === 'function' ? value.name || 'a function' : value))
