import { constants, type Stats } from 'node:fs'
import { lstat, open, opendir } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { chooseFiles, errorMessage, type FileEntry, filesRefused, type WorkspaceFile } from '@aworld-train/core'

/** Most entries of a folder tree that are looked at. */
const maxEntries = 100_000

/**
 * Reads the files of a folder that fit one of the globs. Links are neither followed nor read. No process may change the folder meanwhile.
 * Rejects with FILES_REFUSED.
 */
export async function collectFolder(directory: string, patterns: readonly string[]): Promise<readonly WorkspaceFile[]> {
  const names = await namesIn(directory)
  const entries = await Promise.all(names.map((name) => toEntry(directory, name)))
  return await Promise.all(chooseFiles(entries, patterns).map((entry) => read(directory, entry)))
}

const kinds: readonly (readonly [FileEntry['kind'], (stat: Stats) => boolean])[] = [
  ['file', (stat) => stat.isFile()],
  ['folder', (stat) => stat.isDirectory()],
  ['link', (stat) => stat.isSymbolicLink()],
  ['pipe', (stat) => stat.isFIFO()],
  ['socket', (stat) => stat.isSocket()],
]

/** Paths of all entries of a folder tree, relative to it. `readdir` would enter folders through links. */
async function namesIn(directory: string): Promise<string[]> {
  const names: string[] = []
  const folders = ['']
  for (const folder of folders) {
    for await (const entry of await opendir(join(directory, folder))) {
      if (names.length === maxEntries) throw filesRefused(`the folder has more than ${maxEntries} entries`)
      const name = join(folder, entry.name)
      names.push(name)
      if (entry.isDirectory()) folders.push(name)
    }
  }
  return names
}

async function toEntry(directory: string, name: string): Promise<FileEntry> {
  const stat = await lstat(join(directory, name))
  const [kind = 'device'] = kinds.find(([, isOf]) => isOf(stat)) ?? []
  return { path: name.replaceAll(sep, '/'), kind, bytes: stat.size, executable: (stat.mode & 0o100) !== 0 }
}

async function read(directory: string, { path, bytes: size, executable }: FileEntry): Promise<WorkspaceFile> {
  try {
    await using file = await open(join(directory, path), constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0))
    // One byte more than expected shows that the file grew.
    const bytes = Buffer.alloc(size + 1)
    const { bytesRead } = await file.read(bytes, 0, size + 1, 0)
    if (bytesRead !== size) throw new Error('its size changed while it was read')
    return { path, executable, bytes: bytes.subarray(0, size) }
  } catch (error) {
    throw filesRefused(`${JSON.stringify(path)} could not be read: ${errorMessage(error)}`)
  }
}
