import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import type { Server, Socket } from 'node:net'
import { orAborted, ToolError } from '@aworld-train/core'
import type { Room } from './room.ts'

/** Starting takes some hundred milliseconds. This allows for a machine under heavy load. */
const startDeadlineMs = 30_000
const binaryFd = 4

/** Listens on a port of the namespace that it runs in, and hands the socket to the process that started it. */
const opener = `const server = require('node:net').createServer()
process.once('disconnect', () => process.exit())
server.once('error', ({ code }) => process.send({ code }))
server.listen(Number(process.argv[1]), '127.0.0.1', () => process.send({}, server))`

/**
 * Listens on a loopback port of a room, in this process: a socket belongs to the network namespace in which it was made, whoever holds it.
 * A process that enters the room's network, and nothing else of it, makes the socket and ends. Rejects with a ToolError if the port is
 * taken.
 */
export async function listenInRoom({ pid, userId }: Pick<Room, 'pid' | 'userId'>, port: number, signal: AbortSignal): Promise<Server> {
  // The user of the room may not reach the folder of the binary.
  const binary = openSync(process.execPath, 'r')
  let child: ChildProcess
  try {
    child = spawn(
      'nsenter',
      [
        ['--target', String(pid), '--user', '--net', '--preserve-credentials'],
        ['--', `/proc/self/fd/${binaryFd}`, '-e', opener, String(port)],
      ].flat(),
      {
        ...(userId === undefined ? {} : { uid: userId, gid: userId }),
        env: {},
        cwd: '/',
        stdio: ['ignore', 'ignore', 'pipe', 'ipc', binary],
      },
    )
  } finally {
    closeSync(binary)
  }
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(startDeadlineMs)])
  try {
    return await orAborted(received(child, port), deadline)
  } catch (error) {
    child.once('message', (_, late) => (late as Server | undefined)?.close())
    throw error
  } finally {
    if (child.connected) child.disconnect()
    if (deadline.aborted) child.kill('SIGKILL')
  }
}

function received(child: ChildProcess, port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    let errors = ''
    child.stderr!.on('data', (chunk) => {
      errors = (errors + String(chunk)).slice(-2000)
    })
    child.once('error', reject)
    child.once('message', (message, server) => {
      const { code } = message as { code?: string }
      if (code === undefined) resolve(server as Server)
      else reject(new ToolError(`Port ${port} of the workspace cannot be opened (${code}); end the program that listens on it.`))
    })
    child.once('close', (code, ended) => {
      const cause = errors.trim().split('\n').at(-1) || `it ended with ${ended ?? `exit code ${code}`}`
      reject(new ToolError(`Port ${port} of the workspace cannot be opened: ${cause}.`))
    })
  })
}

/** Hands the connections of a server to `onConnection`. Server and connections are closed when the signal aborts. */
export function serveConnections(server: Server, onConnection: (connection: Socket) => void, signal: AbortSignal): void {
  const open = new Set<Socket>()
  server.on('connection', (connection) => {
    open.add(connection)
    connection.once('close', () => open.delete(connection))
    connection.on('error', () => {})
    onConnection(connection)
  })
  const close = () => {
    server.close()
    for (const connection of open) connection.destroy()
  }
  signal.addEventListener('abort', close, { once: true })
  if (signal.aborted) close()
}
