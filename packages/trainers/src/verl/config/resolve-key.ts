import type { VerlConfig } from './verl-config.ts'

/**
 * A key that the user set. The installed verl has replaced references such as `${oc.env:MODEL_PATH,Qwen/Qwen3-4B}`. `undefined` if it was
 * not set.
 */
export function resolveKey({ keys }: Pick<VerlConfig, 'keys'>, path: string): unknown {
  const key = keys.get(path)
  return key && (key.resolved === undefined ? key.value : key.resolved)
}
