import { realpathSync, statSync } from 'node:fs'
import { resolve, sep } from 'node:path'

/**
 * The absolute path of a regular file that is below one of the folders after all links are resolved; `null` for any other path. A relative
 * path is looked for in each folder, in order. A link keeps its name.
 */
export function fileBelow(path: string, folders: readonly string[]): string | null {
  const roots = folders.flatMap((folder) => attempt(() => realpathSync(folder)) ?? [])
  for (const folder of folders) {
    const file = resolve(folder, path)
    const real = attempt(() => realpathSync(file))
    if (real === null || !roots.some((root) => real.startsWith(root.endsWith(sep) ? root : root + sep))) continue
    if (attempt(() => statSync(real).isFile())) return file
  }
  return null
}

function attempt<Value>(read: () => Value): Value | null {
  try {
    return read()
  } catch {
    return null
  }
}
