import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'

/** Facts that tell whether two machines have the same file. */
export interface FileFacts {
  readonly sha256: string
  readonly bytes: number
  /** Permissions, as `stat` reports them. */
  readonly mode: number
}

/** Reads facts of files. A file that has not changed is not read again. */
export interface FileFactsReader {
  /** `null` where there is no file that can be read. */
  read(path: string): Promise<FileFacts | null>
}

/** Most files whose facts are remembered. Those read longest ago are forgotten first. */
const mostFiles = 10_000

export function createFileFactsReader(): FileFactsReader {
  const remembered = new Map<string, { readonly identity: string; readonly facts: Promise<FileFacts | null> }>()
  return {
    async read(path) {
      const status = await stat(path, { bigint: true }).catch(() => null)
      if (!status?.isFile()) return null
      const { ino, size, mtimeNs, ctimeNs, mode } = status
      const identity = [ino, size, mtimeNs, ctimeNs].join(' ')
      const before = remembered.get(path)
      remembered.delete(path)
      const facts = before?.identity === identity ? before.facts : hashFile(path, Number(mode & 0o777n))
      remembered.set(path, { identity, facts })
      for (const oldest of remembered.keys()) {
        if (remembered.size <= mostFiles) break
        remembered.delete(oldest)
      }
      return await facts
    },
  }
}

async function hashFile(path: string, mode: number): Promise<FileFacts | null> {
  const hash = createHash('sha256')
  let bytes = 0
  try {
    for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
      hash.update(chunk)
      bytes += chunk.length
    }
  } catch {
    return null
  }
  return { sha256: hash.digest('hex'), bytes, mode }
}
