import { createReadStream } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { filesPath, TrainError, type WorkerFile } from '@aworld-train/core'
import { checkMethod, sendError } from '../service/http-answer.ts'
import { createFileFactsReader } from './file-facts.ts'

/** Files of tasks that were announced to workers, by hash. */
export interface AnnouncedFiles {
  /** Describes a task's files for a worker. Files that cannot be read here are left out; whoever needs them reports that. */
  announce(paths: readonly string[]): Promise<WorkerFile[]>
  /** Answers `GET /v1/files/<sha256>` with the bytes of a file that was announced. */
  answer(request: IncomingMessage, response: ServerResponse): Promise<void>
}

/** Most files that may be asked for. Those announced longest ago are forgotten first. */
const mostFiles = 10_000

/** Maps a task's path to a file of this machine; `null` where workers may not have it. */
export type FileOf = (path: string) => string | null

export function createAnnouncedFiles(fileOf: FileOf): AnnouncedFiles {
  const facts = createFileFactsReader()
  const announced = new Map<string, string>()

  function remember(sha256: string, path: string): void {
    announced.delete(sha256)
    announced.set(sha256, path)
    for (const oldest of announced.keys()) {
      if (announced.size <= mostFiles) break
      announced.delete(oldest)
    }
  }

  async function announce(paths: readonly string[]): Promise<WorkerFile[]> {
    const files: WorkerFile[] = []
    for (const path of paths) {
      const source = fileOf(path)
      const found = source === null ? null : await facts.read(source)
      if (source === null || !found) continue
      remember(found.sha256, source)
      files.push({ path, ...found })
    }
    return files
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      checkMethod(filesPath, request.method, ['GET'])
      const sha256 = (request.url ?? '').slice(filesPath.length)
      const path = announced.get(sha256)
      if (path === undefined) throw gone(`No file of a task has the hash "${sha256.slice(0, 64)}"; ask for one that an assignment names.`)
      const found = await facts.read(path)
      if (found?.sha256 !== sha256) throw gone(`${path} is no longer the file that its task was assigned with.`)
      response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': found.bytes })
      // A client that goes away ends this too.
      await pipeline(createReadStream(path), response).catch(() => response.destroy())
    } catch (error) {
      sendError(response, error as TrainError)
    }
  }

  return { announce, answer }
}

const gone = (message: string) => new TrainError('ENVIRONMENT_START_FAILED', message, { details: { status: 404 } })
