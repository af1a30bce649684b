import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Writable } from 'node:stream'
import { ToolError } from '@aworld-train/core'
import { jailEnvironment } from './arguments.ts'
import type { Room } from './room.ts'

/** Longest time of a copy. */
const copyMs = 330_000

/** A pipe's buffer at once, in records of 512 bytes. Tar's own choice, 20, takes a fifth longer. */
const records = '--blocking-factor=128'
/** Archives everything that commands of a workspace may have written. Sockets are left out. */
const packCommand = ['tar', '-c', '-C', '/', '--format=pax', '--sparse', records, 'workspace', 'tmp']
const unpackCommand = ['tar', '-x', '-C', '/', records, '--preserve-permissions', '--no-same-owner']

/** Writes the files of a room, in which nothing else may run meanwhile, to the input of `unpackRoom`, and closes that. */
export async function packRoom(room: Room, output: Writable, signal: AbortSignal): Promise<void> {
  await startTar(room, packCommand, 'ignore', output, signal).ended
}

/** Makes the files in a room that `fill` packs into its argument. */
export async function unpackRoom(room: Room, fill: (input: Writable) => Promise<void>, signal: AbortSignal): Promise<void> {
  const { child, ended } = startTar(room, unpackCommand, 'pipe', 'ignore', signal)
  const input = child.stdin!
  await Promise.all([fill(input).finally(() => input.destroy()), ended])
}

/**
 * Starts tar in a room, as the user of its files and without the rights of the room's root. What links lead to is the room's. It runs nothing
 * of the workspace and so needs no jail, whose start takes longer than the copy of most files.
 */
function startTar(
  { pid, userId, cgroup }: Room,
  command: readonly string[],
  input: 'pipe' | 'ignore',
  output: Writable | 'ignore',
  signal: AbortSignal,
) {
  signal.throwIfAborted()
  const child = spawn(
    'nsenter',
    [
      ['--target', String(pid), '--user', '--mount', '--net', '--ipc', '--uts', '--cgroup', '--preserve-credentials', '--', 'setpriv'],
      ['--no-new-privs', '--inh-caps=-all', '--bounding-set=-all', '--pdeathsig=SIGKILL', '--', ...command],
    ].flat(),
    {
      ...(userId === undefined ? {} : { uid: userId, gid: userId }),
      ...{ env: jailEnvironment, cwd: '/', stdio: [input, output, 'pipe'], timeout: copyMs, killSignal: 'SIGKILL', signal },
    },
  )
  // Tar alone has the other end from now on, without which the reader would wait for more.
  if (output !== 'ignore') output.destroy()
  for (const emitter of [child, child.stdin]) emitter?.on('error', () => {})
  // The kernel counts new files in the group of what writes them. To join one takes milliseconds, and reading adds nothing.
  if (input === 'pipe' && child.pid !== undefined) cgroup.add(child.pid)
  let errors = ''
  child.stderr!.on('data', (chunk) => {
    errors = (errors + String(chunk)).slice(-2000)
  })
  const ended = once(child, 'close').then(
    ([exitCode, ending]) => {
      // A reader that has ended says itself why.
      if (exitCode === 0 || ending === 'SIGPIPE') return
      const cause = errors.trim().split('\n').at(-1) || `tar ended with ${ending ?? `exit code ${exitCode}`}`
      throw new ToolError(`The files could not be copied: ${cause}.`)
    },
    (error: unknown) => {
      throw signal.aborted ? signal.reason : error
    },
  )
  return { child, ended }
}
