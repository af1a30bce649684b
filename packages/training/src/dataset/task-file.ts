import { createHash } from 'node:crypto'
import { closeSync, openSync, readSync, realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileBelow } from '@aworld-train/core'

/** A file of a task. */
export interface TaskFile {
  readonly path: string
  /** Hash of its bytes; `null` if the file was not looked for. */
  readonly sha256: string | null
}

/** Finds files of tasks by the paths in their rows. */
export interface FileFinder {
  /** Folder that all files are below. */
  readonly folder: string
  /** `null` unless the path, with all links resolved, is a file below the folder. */
  find(path: string): TaskFile | null
}

/**
 * Finds the files of a dataset, which is a path or a folder. If a path is a link, as in the cache of a hub, files beside its target belong
 * to the dataset too.
 */
export function createFileFinder(dataset: string): FileFinder {
  const stats = statSync(dataset, { throwIfNoEntry: false })
  const folder = stats?.isDirectory() ? dataset : dirname(dataset)
  const folders = stats?.isFile() ? [folder, dirname(realpathSync(dataset))] : [folder]
  const hashes = new Map<string, string>()
  return {
    folder,
    find(path) {
      const file = fileBelow(path, folders)
      if (file === null) return null
      const sha256 = hashes.get(file) ?? hashOf(file)
      hashes.set(file, sha256)
      return { path: file, sha256 }
    },
  }
}

function hashOf(path: string): string {
  const hash = createHash('sha256')
  const chunk = Buffer.allocUnsafe(1 << 20)
  const file = openSync(path, 'r')
  try {
    for (let size = readSync(file, chunk); size > 0; size = readSync(file, chunk)) hash.update(chunk.subarray(0, size))
  } finally {
    closeSync(file)
  }
  return hash.digest('hex')
}
