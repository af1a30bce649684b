import { formatOverride } from '../config/hydra-override.ts'
import { shellText } from '../render/shell-text.ts'

const key = 'ray_kwargs.ray_init.runtime_env.py_executable'

/**
 * The override that lets Ray start its workers with an interpreter whose path a shell would cut, such as one with a blank;
 * none for any other path. Ray 2.60 puts the path into a line of bash as it is (`_private/runtime_env/context.py`).
 */
export function workerInterpreter(python: string, overrides: readonly string[] = []): string[] {
  const quoted = shellText(python)
  return quoted === python || overrides.some((each) => each.replace(/^\++/, '').startsWith(`${key}=`))
    ? []
    : [formatOverride(key, quoted, '++')]
}
