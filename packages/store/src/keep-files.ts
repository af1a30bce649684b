import { hash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, open, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import type { EpisodeFile, WorkspaceFile } from '@aworld-train/core'
import { corrupt, toStoreError } from './store-error.ts'
import { syncDirectory } from './write-json-atomically.ts'

/** Keeps the contents of an episode's collected files in the run at `path`, each once, under the hash that the episode names. */
export async function keepFiles(path: string, named: readonly EpisodeFile[], files: readonly WorkspaceFile[]): Promise<void> {
  const directory = join(path, 'files')
  try {
    await mkdir(directory, { recursive: true })
    const contents = new Map(files.map((file) => [file.path, file.bytes]))
    for (const { path: name, sha256 } of named) {
      const target = join(directory, sha256)
      if (existsSync(target)) continue
      const temporary = `${target}.${process.pid}.tmp`
      await using file = await open(temporary, 'w')
      await file.writeFile(contents.get(name)!)
      await file.sync()
      await rename(temporary, target)
    }
    await syncDirectory(directory)
  } catch (error) {
    throw toStoreError(error, path)
  }
}

/** Reads the collected files of an episode of the run at `path`. Rejects with STORE_CORRUPT if one is missing or another than it was. */
export async function readFiles(path: string, files: readonly EpisodeFile[]): Promise<WorkspaceFile[]> {
  return await Promise.all(
    files.map(async ({ path: name, executable, sha256 }) => {
      const bytes = await readFile(join(path, 'files', sha256)).catch((error: unknown) => {
        throw toStoreError(error, path)
      })
      if (hash('sha256', bytes) !== sha256) throw corrupt(path, `the collected file ${JSON.stringify(name)} is another than it was`)
      return { path: name, executable, bytes }
    }),
  )
}
