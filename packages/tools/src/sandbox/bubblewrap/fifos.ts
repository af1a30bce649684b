import { execFile } from 'node:child_process'
import { chownSync, closeSync, constants, openSync, rmSync, unlinkSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { makeOwnFolder } from '@aworld-train/core'

const batch = 16

export interface OutputPipe {
  /** The descriptor that a child process gets as its output. The parent closes its own once the child has it. */
  readonly writeEnd: number
  readonly output: Socket
}

export interface Fifos {
  /** Opens a pipe whose end a process of this user may open again as `/dev/stdout`. */
  open(userId: number | undefined): Promise<OutputPipe>
  close(): Promise<void>
}

/**
 * Pipes for the output of jails. Node itself makes sockets, on which a program that opens `/dev/stdout` or `/dev/stderr` fails. Node cannot
 * make a pipe, so `mkfifo` makes a few at a time, the first before any is asked for. The name is removed as soon as both ends are open.
 */
export function createFifos(): Fifos {
  const folder = makeOwnFolder('aworld-train-sandbox-')
  const names: string[] = []
  let made = 0
  let making: Promise<void> | undefined

  async function make(): Promise<void> {
    const paths = Array.from({ length: batch }, () => join(folder, String(made++)))
    await promisify(execFile)('mkfifo', ['-m', '600', ...paths])
    names.push(...paths)
  }
  const refill = (): Promise<void> => {
    making ??= make().finally(() => {
      making = undefined
    })
    return making
  }
  // If this fails, the next `open` tries again and reports the error.
  refill().catch(() => {})

  return {
    async open(userId) {
      while (names.length === 0) await refill()
      const path = names.pop()!
      if (userId !== undefined) chownSync(path, userId, userId)
      const readEnd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
      try {
        const writeEnd = openSync(path, constants.O_WRONLY)
        unlinkSync(path)
        return { writeEnd, output: new Socket({ fd: readEnd, readable: true, writable: false }) }
      } catch (error) {
        closeSync(readEnd)
        throw error
      }
    },
    async close() {
      await making?.catch(() => {})
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
