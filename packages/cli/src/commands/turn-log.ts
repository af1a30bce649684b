import { open } from 'node:fs/promises'
import { TrainError, Turn } from '@aworld-train/protocol'
import { z } from 'zod'

/** Whose turn a line holds, where a file holds those of many. */
export interface TurnSession {
  readonly rollout: string
  readonly attempt: number
  readonly agent: string
}

export interface TurnLog {
  /** Resolves when the turn's line is written; rejects with STORE_FAILED. */
  append(turn: Turn, session?: TurnSession): Promise<void>
  close(): Promise<void>
}

const reasonOf = (cause: unknown) => (cause instanceof Error ? cause.message : String(cause))

/** Opens a file that turns are appended to as JSON lines, one after another. CONFIG_INVALID where it cannot be opened. */
export async function openTurnLog(path: string): Promise<TurnLog> {
  const file = await open(path, 'a').catch((cause: unknown) => {
    throw new TrainError('CONFIG_INVALID', `Turns cannot be recorded in ${path}: ${reasonOf(cause)}; name a file that can be written.`, {
      cause,
    })
  })
  let last = Promise.resolve()
  return {
    append(turn, session) {
      const encoded = z.encode(Turn, turn)
      const line = `${JSON.stringify(session ? { ...session, turn: encoded } : encoded)}\n`
      const written = last
        .then(() => file.appendFile(line))
        .catch((cause: unknown) => {
          throw new TrainError('STORE_FAILED', `The turn was not recorded in ${path}: ${reasonOf(cause)}; free space there.`, { cause })
        })
      last = written.catch(() => {})
      return written
    },
    async close() {
      await last
      await file.close()
    },
  }
}
