import { type FileHandle, open } from 'node:fs/promises'
import { StringDecoder } from 'node:string_decoder'

export interface JsonLineFollower {
  /** Reads the lines that the file has. An unfinished last line is read later. */
  poll(): Promise<void>
  close(): Promise<void>
}

/** Calls `onValue` once with every line of a growing file. A missing file is looked for again. Lines that are not JSON go to `onBroken`. */
export function createJsonLineFollower(
  path: string,
  onValue: (value: unknown) => void,
  onBroken: (line: string) => void = () => {},
): JsonLineFollower {
  const decoder = new StringDecoder('utf8')
  const buffer = Buffer.allocUnsafe(64 * 1024)
  let file: FileHandle | null = null
  let offset = 0
  let rest = ''
  let polling = Promise.resolve()

  function take(line: string): void {
    if (line.trim() === '') return
    let value: unknown
    try {
      value = JSON.parse(line)
    } catch {
      onBroken(line)
      return
    }
    onValue(value)
  }

  async function read(): Promise<void> {
    file ??= await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null
      throw error
    })
    if (file === null) return
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, buffer.length, offset)
      if (bytesRead === 0) return
      offset += bytesRead
      const lines = (rest + decoder.write(buffer.subarray(0, bytesRead))).split('\n')
      rest = lines.pop() as string
      for (const line of lines) take(line)
    }
  }

  return {
    poll() {
      polling = polling.then(read)
      return polling
    },
    async close() {
      await polling.catch(() => {})
      await file?.close()
      file = null
    },
  }
}
