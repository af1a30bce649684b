import { lstatSync, readlinkSync } from 'node:fs'

/** Arguments of bubblewrap that show what is at a path of the machine, read-only and links as links; none where there is nothing. */
export function mounted(path: string): string[] {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (!stat) return []
  return stat.isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path]
}
