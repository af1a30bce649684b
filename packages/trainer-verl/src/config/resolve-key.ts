import { setAt } from '@aworld-train/training'
import { resolveTree, valueAt } from './omega.ts'
import type { VerlConfig } from './verl-config.ts'
import { kindOfKey } from './verl-schema.ts'

/** A key that the user set, with references such as `${oc.env:MODEL_PATH,Qwen/Qwen3-4B}` replaced; `undefined` where it was not set. */
export function resolveKey(
  { keys, schema, environment }: VerlConfig,
  path: string,
  variables: Readonly<Record<string, string | undefined>> = process.env,
): unknown {
  if (!keys.has(path)) return undefined
  const tree = structuredClone(schema.defaults) as Record<string, unknown>
  for (const key of keys.values()) if (kindOfKey(schema, key.path) !== 'group') setAt(tree, key.path.split('.'), structuredClone(key.value))
  return valueAt(resolveTree(tree, { ...variables, ...environment }), path)
}
