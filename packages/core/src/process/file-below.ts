import { realpathSync, statSync } from 'node:fs'
import { resolve, sep } from 'node:path'

/**
 * The real path of a file that lies below one of the folders, links resolved; `null` for every other path and for what is no
 * regular file. A relative path is looked for in each folder, in their order.
 */
export function fileBelow(path: string, folders: readonly string[]): string | null {
  for (const folder of folders) {
    try {
      const root = realpathSync(folder)
      const file = realpathSync(resolve(root, path))
      if (file.startsWith(root.endsWith(sep) ? root : root + sep) && statSync(file).isFile()) return file
    } catch {
      // The next folder may have it.
    }
  }
  return null
}
