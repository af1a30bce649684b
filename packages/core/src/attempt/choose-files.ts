import { posix } from 'node:path'
import { collectLimits } from '../protocol/collected-files.ts'
import { TrainError } from '../protocol/errors.ts'

/** An entry of a folder tree, before it is read. */
export interface FileEntry {
  /** Relative to the root of the tree. */
  readonly path: string
  readonly kind: 'file' | 'folder' | 'link' | 'pipe' | 'socket' | 'device'
  readonly bytes: number
  readonly executable: boolean
}

/** The error for files that are not collected; `what` is a clause. */
export const filesRefused = (what: string): TrainError =>
  new TrainError('FILES_REFUSED', `No file of the workspace was collected: ${what}.`)

/** Throws FILES_REFUSED for files that exceed `collectLimits`; `what` says which they are. */
export function checkCollectLimits(files: readonly { readonly bytes: number }[], what: string): void {
  if (files.length > collectLimits.files) throw filesRefused(`${what} is more than ${collectLimits.files} files`)
  if (files.reduce((sum, { bytes }) => sum + bytes, 0) > collectLimits.bytes)
    throw filesRefused(`${what} has more than ${collectLimits.bytes} bytes`)
}

/**
 * Chooses the files that fit one of the globs, ordered by path. Throws FILES_REFUSED if one is no regular file, if a link stands for a folder
 * that a pattern names, or if they exceed `collectLimits`.
 */
export function chooseFiles(entries: Iterable<FileEntry>, patterns: readonly string[]): FileEntry[] {
  const matchers = patterns.map((pattern) => {
    const whole = posix.normalize(pattern)
    return { pattern: whole, folder: staticFolder(whole) }
  })
  const chosen: FileEntry[] = []
  for (const entry of entries) {
    const { path, kind } = entry
    const isOnTheWay = matchers.some(({ folder }) => `${folder}/`.startsWith(`${path}/`))
    const fits = matchers.some(
      ({ pattern, folder }) => (folder === '' || path.startsWith(`${folder}/`)) && posix.matchesGlob(path, pattern),
    )
    if (kind === 'folder' || !(fits || (isOnTheWay && kind !== 'file'))) continue
    if (kind !== 'file') throw filesRefused(`${JSON.stringify(path)} is a ${kind}, and only regular files are`)
    chosen.push(entry)
  }
  checkCollectLimits(chosen, `what fits ${patterns.join(', ')}`)
  return chosen.sort((one, other) => (one.path < other.path ? -1 : 1))
}

/** The folders at the beginning of a pattern that are no glob. */
function staticFolder(pattern: string): string {
  const parts = pattern.split('/')
  const firstGlob = parts.findIndex((part) => /[*?[\]{}()!+@]/.test(part))
  return parts.slice(0, firstGlob === -1 ? -1 : firstGlob).join('/')
}
