import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync } from 'node:fs'
import type { Socket } from 'node:net'
import type { Duplex, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { ToolError } from '@aworld-train/core'
import { confinement, devices, jailEnvironment, ownUser } from './arguments.ts'
import type { Fifos } from './fifos.ts'
import { childrenOf, endTree, signalTo } from './processes.ts'
import type { Room } from './room.ts'

/** What jails need beside their room. */
export interface JailParts {
  readonly fifos: Fifos
  /** The filter of system calls. */
  readonly filter: Buffer
  /** Limits of each process, as commands of a POSIX shell. */
  readonly processLimits: string
}

/** A bash in a jail, with what it starts. It runs what comes on its standard input, line by line. */
export interface Jail {
  readonly pid: number
  readonly stdin: Writable
  /** What is written to standard output, and to standard error where the two are joined. Ends when no process of the jail is left. */
  readonly output: Socket
  /** What stands on standard error. */
  errors(): string
  /** Whether the bash has run anything; false once it has ended before. */
  readonly stands: Promise<boolean>
  /** The first process in the jail, which those without a parent fall to and with which all others end; undefined before the jail stands. */
  firstProcess(): number | undefined
  /** Resolves when the bash has ended. A signal means that the jail was ended from outside. */
  readonly ended: Promise<JailEnd>
  hasEnded(): boolean
  /** Ends every process of the jail; one that starts is let stand first. */
  kill(): Promise<void>
}

export interface JailEnd {
  readonly exitCode: number
  readonly signal: NodeJS.Signals | null
}

const filterFd = 3
/** It ends with its room. */
const jailArguments = [
  ['--unshare-pid'],
  ownUser(1000),
  confinement(filterFd),
  ['--die-with-parent'],
  ['--ro-bind', '/', '/'],
  ['--bind', '/workspace', '/workspace'],
  ['--bind', '/tmp', '/tmp'],
  ['--proc', '/proc'],
  devices,
  ['--chdir', '/workspace'],
  ['--', 'bash', '--norc', '--noprofile'],
].flat()

/** What bash writes to standard error when it runs. */
const startMark = '\x06'

/** A machine under heavy load gets its time to start a jail that is to be ended; one that takes longer is ended as it stands. */
const startDeadlineMs = 5000

/** Where a jail stands. */
export interface JailPlace extends Pick<Room, 'userId' | 'cgroup'> {
  /** One that is still being opened starts at the same time as its jail. */
  readonly room: Room | Promise<Room>
}

/** Starts a jail of a room. What its bash is to run need not be known yet: the start takes longer than most commands. */
export async function startJail({ userId, cgroup, room }: JailPlace, { fifos, filter, processLimits }: JailParts): Promise<Jail> {
  const { writeEnd, output } = await fifos.open(userId)
  output.on('error', () => {})
  let child: ChildProcess
  try {
    child = spawn(
      '/bin/sh',
      [
        // It waits for the process of the room before it starts anything, so that all it starts belongs to the control group.
        ['-c', `read -r room || exit; ${processLimits}exec nsenter --target "$room" "$@"`, 'sh'],
        ['--user', '--mount', '--net', '--ipc', '--uts', '--cgroup', '--pid', '--preserve-credentials'],
        ['--', 'bwrap'],
        jailArguments,
      ].flat(),
      {
        ...(userId === undefined ? {} : { uid: userId, gid: userId }),
        env: jailEnvironment,
        cwd: '/',
        stdio: ['pipe', writeEnd, 'pipe', 'pipe'],
      },
    )
  } finally {
    closeSync(writeEnd)
  }
  let errors = ''
  let hasEnded = false
  const ended = new Promise<JailEnd>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code, signal) => {
      hasEnded = true
      resolve({ exitCode: code ?? 128, signal })
    })
  })
  ended.catch(() => {})
  const { promise: stands, resolve: onStart } = Promise.withResolvers<boolean>()
  child.once('close', () => onStart(false))
  const filterPipe = child.stdio[filterFd] as Duplex
  for (const stream of [child.stdin, child.stderr, filterPipe]) stream?.on('error', () => {})
  child.stderr?.on('data', (chunk) => {
    errors = (errors + String(chunk)).slice(-4000)
    if (errors.includes(startMark)) onStart(true)
  })
  if (child.pid === undefined) await ended
  const pid = child.pid!
  try {
    cgroup.add(pid)
    child.stdin!.write(`${(await room).pid}\nprintf '${startMark}' >&2\n`)
  } catch (error) {
    // The room did not open, or was closed meanwhile. What was started waits for its line, and has started nothing.
    child.kill('SIGKILL')
    output.destroy()
    throw error
  }
  filterPipe.end(filter)
  filterPipe.resume()
  /** The outer bubblewrap is what was started; the inner one is its only child, and the first process in the jail the only child of that. */
  const firstProcess = () => childrenOf(childrenOf(pid)[0] ?? 0)[0]
  return {
    pid,
    stdin: child.stdin!,
    output,
    errors: () => errors.replace(startMark, '').trim(),
    stands,
    firstProcess,
    ended,
    hasEnded: () => hasEnded,
    async kill() {
      // Of a jail that is ended while it starts a process can be missed, and would keep its output open for ever.
      const stood = await Promise.race([stands, sleep(startDeadlineMs, false, { ref: false })])
      const first = firstProcess()
      if (stood && first !== undefined) signalTo(first, 'SIGKILL')
      else endTree(child)
    },
  }
}

/** Why a program could not be started, as the model reads it. */
export function startFailure(errors: string): ToolError {
  const cause = errors.split('\n').at(-1) || 'it ended before it began'
  return new ToolError(`The command could not be started (${cause}); end processes that still run, or remove files, and try again.`)
}
