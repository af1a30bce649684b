import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync } from 'node:fs'
import type { Socket } from 'node:net'
import type { Duplex, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ProgramProfile, ToolError } from '@aworld-train/core'
import { confinement, graphicalDevices, jailEnvironment, ownUser, roomDevices } from './arguments.ts'
import type { Fifos } from './fifos.ts'
import { childrenOf, endTree, signalTo } from './processes.ts'
import type { Room } from './room.ts'

/** Parts that jails need besides their room. */
export interface JailParts {
  readonly fifos: Fifos
  readonly profiles: Readonly<Record<ProgramProfile, JailProfile>>
}

/** What the programs of a jail may do. */
export interface JailProfile {
  /** The filter of system calls. */
  readonly filter: Buffer
  /** Limits of each process, as commands of a POSIX shell. */
  readonly processLimits: string
}

/** A bash in a jail, with all that it starts. It runs its standard input line by line. */
export interface Jail {
  readonly pid: number
  readonly stdin: Writable
  /** The jail's standard output, and its standard error if the two are joined. Ends when no process of the jail is left. */
  readonly output: Socket
  /** The text on standard error. */
  errors(): string
  /** Resolves to true once the bash has run anything, to false if it ended before. */
  readonly stands: Promise<boolean>
  /** The first process in the jail. It adopts processes without a parent, and all others end with it. Undefined before the jail stands. */
  firstProcess(): number | undefined
  /** Resolves when the bash has ended. A signal means that the jail was ended from outside. */
  readonly ended: Promise<JailEnd>
  hasEnded(): boolean
  /** Ends every process of the jail. A jail that is starting is first allowed to stand. */
  kill(): Promise<void>
}

export interface JailEnd {
  readonly exitCode: number
  readonly signal: NodeJS.Signals | null
}

const filterFd = 3
/** Arguments of a jail, which ends with its room. */
const jailArguments = (profile: ProgramProfile, readOnly: boolean) =>
  [
    ['--unshare-pid'],
    ownUser(1000),
    confinement(filterFd, profile),
    ['--die-with-parent'],
    ['--ro-bind', '/', '/'],
    [readOnly ? '--ro-bind' : '--bind', '/workspace', '/workspace'],
    ['--bind', '/tmp', '/tmp'],
    ['--proc', '/proc'],
    profile === 'graphical' ? graphicalDevices : roomDevices,
    ['--chdir', '/workspace'],
    ['--', 'bash', '--norc', '--noprofile'],
  ].flat()

/** Mark that bash writes to standard error when it runs. */
const startMark = '\x06'

/** How long a jail that is to be ended may take to stand, which allows for a machine under heavy load. A slower one is ended as it is. */
const startDeadlineMs = 5000

/** The place of a jail. */
export interface JailPlace extends Pick<Room, 'userId' | 'cgroup'> {
  /** A room that is still being opened starts at the same time as its jail. */
  readonly room: Room | Promise<Room>
  /** Whether nothing in the jail can write to the workspace. */
  readonly readOnly?: boolean | undefined
}

/** Starts a jail of a room. Its bash's command need not be known yet, because the start takes longer than most commands. */
export async function startJail(
  { userId, cgroup, room, readOnly = false }: JailPlace,
  { fifos, profiles }: JailParts,
  profile: ProgramProfile = 'command',
): Promise<Jail> {
  const { filter, processLimits } = profiles[profile]
  const { writeEnd, output } = await fifos.open(userId)
  output.on('error', () => {})
  let child: ChildProcess
  try {
    child = spawn(
      '/bin/sh',
      [
        // The shell waits for the process of the room before it starts anything, so that all it starts belongs to the control group.
        ['-c', `read -r room || exit; ${processLimits}exec nsenter --target "$room" "$@"`, 'sh'],
        ['--user', '--mount', '--net', '--ipc', '--uts', '--cgroup', '--pid', '--preserve-credentials'],
        ['--', 'bwrap'],
        jailArguments(profile, readOnly),
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
    // The room did not open, or was closed in the meantime. The started shell waits for its line and has started nothing.
    child.kill('SIGKILL')
    output.destroy()
    throw error
  }
  filterPipe.end(filter)
  filterPipe.resume()
  /**
   * The outer bubblewrap is the started process. The inner one is its only child, and the first process in the
   * jail is the only child of that.
   */
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
      // If a jail is ended while it starts, a process can be missed, which would keep its output open for ever.
      const stood = await Promise.race([stands, sleep(startDeadlineMs, false, { ref: false })])
      const first = firstProcess()
      if (stood && first !== undefined) signalTo(first, 'SIGKILL')
      else endTree(child)
    },
  }
}

/** The error for a program that could not be started, for the model to read. */
export function startFailure(errors: string): ToolError {
  const cause = errors.split('\n').at(-1) || 'it ended before it began'
  return new ToolError(`The command could not be started (${cause}); end processes that still run, or remove files, and try again.`)
}
