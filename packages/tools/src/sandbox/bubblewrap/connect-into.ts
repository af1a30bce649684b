import { once } from 'node:events'
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { connect } from 'node:net'
import type { Duplex } from 'node:stream'
import { errorMessage, ToolError } from '@aworld-train/core'

/** Opens a path without reading it (open(2)); Node has no name for it. */
const O_PATH = 0o10_000_000

/** Connects to a UNIX socket by its name in the /dev/shm of a process. Rejects with a ToolError. */
export async function connectInto(pid: number | undefined, name: string, signal: AbortSignal): Promise<Duplex> {
  if (!/^[\w-]+$/.test(name)) throw new ToolError(`${JSON.stringify(name)} is no name of a socket.`)
  try {
    // The folder cannot be replaced, because /dev is read-only in a jail. The socket could be: a link, which would lead from here to sockets
    // of the machine, is not followed.
    await using file = await open(`/proc/${pid}/root/dev/shm/${name}`, O_PATH | constants.O_NOFOLLOW)
    if (!(await file.stat()).isSocket()) throw new Error('it is no socket')
    const socket = connect(`/proc/self/fd/${file.fd}`)
    // An error that comes after the signal has no other listener.
    socket.on('error', () => {})
    try {
      await once(socket, 'connect', { signal })
    } catch (error) {
      socket.destroy()
      throw error
    }
    return socket
  } catch (cause) {
    signal.throwIfAborted()
    throw new ToolError(`The program takes no connection at /dev/shm/${name}: ${errorMessage(cause)}.`)
  }
}
