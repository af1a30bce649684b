import { createHash, randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { errorMessage, makeOwnFolder, orAborted, TrainError, type WorkerFile } from '@aworld-train/core'
import { createFileFactsReader } from './file-facts.ts'

export interface FetchedFilesOptions {
  /** Fetches the bytes of a file from the coordinator. */
  readonly fetch: (sha256: string, signal: AbortSignal) => Promise<AsyncIterable<Buffer>>
  /** Folder that paths of tasks' files are relative to. */
  readonly baseDirectory: string
  /** Most bytes of all kept files. Files of no running attempt make room for others. Default 8 GiB. */
  readonly maxBytes?: number | undefined
}

/** The files of an attempt's task on this machine. */
export interface PlacedFiles {
  /** Paths of the task's files, in its order. */
  readonly paths: string[]
  /** Called when the attempt has ended. */
  release(): void
}

/** Files of tasks on a machine that may lack them. A missing file is fetched once from the coordinator. */
export interface FetchedFiles {
  /** Rejects with ENVIRONMENT_START_FAILED, and with the reason of `signal`. */
  place(paths: readonly string[], files: readonly WorkerFile[], signal: AbortSignal): Promise<PlacedFiles>
  /** Removes the fetched files. */
  close(): Promise<void>
}

interface Kept {
  readonly path: string
  readonly bytes: number
  /** Running attempts that use it. */
  users: number
}

export function createFetchedFiles({ fetch, baseDirectory, maxBytes = 8 * 1024 ** 3 }: FetchedFilesOptions): FetchedFiles {
  const facts = createFileFactsReader()
  /** Keyed by path; the most recently used file is last. */
  const kept = new Map<string, Kept>()
  const fetching = new Map<string, Promise<void>>()
  const closing = new AbortController()
  let folder: string | null = null

  const isThere = async (path: string, { sha256 }: WorkerFile) => (await facts.read(path))?.sha256 === sha256

  function use(path: string, { bytes }: WorkerFile): Kept {
    const entry = kept.get(path) ?? { path, bytes, users: 0 }
    kept.delete(path)
    kept.set(path, entry)
    entry.users += 1
    return entry
  }

  function makeRoom(file: WorkerFile): void {
    let total = kept.values().reduce((sum, { bytes }) => sum + bytes, 0)
    for (const { path, bytes, users } of [...kept.values()]) {
      if (total <= maxBytes) return
      if (users > 0) continue
      kept.delete(path)
      total -= bytes
      // Removed at once, so that whoever wants the file later finds that it must be fetched.
      rmSync(path, { force: true })
    }
    if (total > maxBytes)
      throw cannot(
        file,
        `it has ${file.bytes} bytes, and a worker keeps ${maxBytes} of all tasks that run; lay it under the same path on its machine`,
      )
  }

  async function download(path: string, file: WorkerFile): Promise<void> {
    makeRoom(file)
    await mkdir(dirname(path), { recursive: true })
    const partial = `${path}.${randomUUID()}`
    const hash = createHash('sha256')
    let bytes = 0
    try {
      await using target = await open(partial, 'wx', file.mode)
      for await (const chunk of await fetch(file.sha256, closing.signal)) {
        bytes += chunk.length
        if (bytes > file.bytes) throw new Error(`its coordinator sends more than the ${file.bytes} bytes that it has`)
        hash.update(chunk)
        await target.writeFile(chunk)
      }
      if (hash.digest('hex') !== file.sha256) throw new Error(`what its coordinator sent, ${bytes} of ${file.bytes} bytes, is another file`)
      await rename(partial, path)
    } catch (cause) {
      await rm(partial, { force: true })
      throw cannot(file, errorMessage(cause).replace(/\.$/, ''), cause)
    }
  }

  async function requireThere(path: string, file: WorkerFile): Promise<void> {
    // An agent may have written to it.
    if (!fetching.has(path) && (await isThere(path, file))) return
    const pending = fetching.get(path) ?? download(path, file).finally(() => fetching.delete(path))
    fetching.set(path, pending)
    await pending
  }

  return {
    async place(paths, files, signal) {
      const used: Kept[] = []
      const release = () => {
        for (const entry of used.splice(0)) entry.users -= 1
      }
      const placeOne = async (path: string): Promise<string> => {
        const file = files.find((each) => each.path === path)
        // If machines share their files, agents see the same paths as in the coordinator's process.
        if (!file || (await isThere(resolve(baseDirectory, path), file))) return path
        const name = basename(path)
        if (name === '' || name === '.' || name === '..') throw cannot(file, 'its path names no file')
        folder ??= makeOwnFolder('aworld-train-files-')
        const entry = use(join(folder, file.sha256, name), file)
        used.push(entry)
        await orAborted(requireThere(entry.path, file), signal)
        return entry.path
      }
      try {
        const placed: string[] = []
        for (const path of paths) placed.push(await placeOne(path))
        return { paths: placed, release }
      } catch (error) {
        release()
        throw error
      }
    },
    async close() {
      closing.abort(new TrainError('ROLLOUT_CANCELLED', 'The worker has ended.'))
      await Promise.allSettled(fetching.values())
      if (folder !== null) await rm(folder, { recursive: true, force: true, maxRetries: 3 })
    },
  }
}

function cannot({ path }: WorkerFile, why: string, cause?: unknown): TrainError {
  return new TrainError('ENVIRONMENT_START_FAILED', `The file ${path} of the task cannot be had from the coordinator: ${why}.`, { cause })
}
