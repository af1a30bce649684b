import { type FileHandle, open } from 'node:fs/promises'
import { errorMessage, TrainError, Turn } from '@aworld-train/core'
import { endOfLines } from '@aworld-train/store'
import { z } from 'zod'

/** Agent and rollout of a turn, for a file with the turns of many. */
export interface TurnSession {
  readonly rollout: string
  readonly attempt: number
  readonly agent: string
}

export interface TurnLog {
  /** Resolves when the turn's line is written. Rejects with STORE_FAILED; then no part of it is in the file. */
  append(turn: Turn, session?: TurnSession): Promise<void>
  close(): Promise<void>
}

/** Writes a line with one system call, or removes the part that was written. */
async function appendLine(file: FileHandle, line: Buffer): Promise<void> {
  const { bytesWritten } = await file.write(line)
  if (bytesWritten === line.length) return
  const { size } = await file.stat()
  await file.truncate(size - bytesWritten)
  throw new Error(`ENOSPC: only ${bytesWritten} of ${line.length} bytes could be written`)
}

/** Removes a line after the last line feed, which a crash cut off. Throws if anything else is there. */
async function dropTornLine(file: FileHandle): Promise<void> {
  const { size } = await file.stat()
  const end = await endOfLines(file)
  if (end === size) return
  const { buffer, bytesRead } = await file.read(Buffer.alloc(2), 0, 2, end)
  if (!'{"'.startsWith(buffer.toString('utf8', 0, bytesRead))) throw new Error('its last line is no turn and has no end')
  await file.truncate(end)
}

/** Opens a file that turns are appended to as JSON lines, one after another. Throws CONFIG_INVALID if it cannot be opened. */
export async function openTurnLog(path: string): Promise<TurnLog> {
  let file: FileHandle | null = null
  try {
    file = await open(path, 'a+')
    await dropTornLine(file)
  } catch (cause) {
    await file?.close()
    const message = `Turns cannot be recorded in ${path}: ${errorMessage(cause)}; name a file that can be written.`
    throw new TrainError('CONFIG_INVALID', message, { cause })
  }
  const opened = file
  let last = Promise.resolve()
  return {
    append(turn, session) {
      const encoded = z.encode(Turn, turn)
      const line = Buffer.from(`${JSON.stringify(session ? { ...session, turn: encoded } : encoded)}\n`)
      const written = last
        .then(() => appendLine(opened, line))
        .catch((cause: unknown) => {
          throw new TrainError('STORE_FAILED', `The turn was not recorded in ${path}: ${errorMessage(cause)}; free space there.`, { cause })
        })
      last = written.catch(() => {})
      return written
    },
    async close() {
      await last
      await opened.close()
    },
  }
}
