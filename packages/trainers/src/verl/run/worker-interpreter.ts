import { formatOverride } from '../config/hydra-override.ts'
import { shellText } from '../render/shell-text.ts'

const key = 'ray_kwargs.ray_init.runtime_env.py_executable'

/**
 * The override that lets Ray start its workers with an interpreter whose path a shell would split, such as one with a blank; none for any
 * other path. Ray 2.60 inserts the path unquoted into a line of bash (`_private/runtime_env/context.py`).
 */
export function workerInterpreter(python: string, overrides: readonly string[] = []): string[] {
  const quoted = shellText(python)
  return quoted === python || overrides.some((each) => each.replace(/^\++/, '').startsWith(`${key}=`))
    ? []
    : [formatOverride(key, quoted, '++')]
}
