import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync } from 'node:fs'
import type { Socket } from 'node:net'
import type { Duplex, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { ToolError } from '@aworld-train/core'
import type { Fifos } from './fifos.ts'
import { childrenOf, descendantsOf, endTree, signalTo } from './processes.ts'
import { jailEnvironment, type Room } from './room.ts'

/** What jails need beside their room. */
export interface JailParts {
  readonly fifos: Fifos
  /** The filter of system calls. */
  readonly filter: Buffer
  /** Limits of each process, as commands of a POSIX shell. */
  readonly processLimits: string
}

/** A program that runs in a jail, with what it starts. */
export interface Jail {
  readonly pid: number
  readonly stdin: Writable
  /** What the program writes to standard output, and to standard error where it joins the two. Ends when no process of the jail is left. */
  readonly output: Socket
  /** What stood on standard error before the two were joined. */
  errors(): string
  /** Resolves when its first process has ended. A signal means that the jail was ended from outside. */
  readonly ended: Promise<JailEnd>
  kill(): void
}

export interface JailEnd {
  readonly exitCode: number
  readonly signal: NodeJS.Signals | null
}

const jailArguments = [
  ...['--unshare-user', '--unshare-pid', '--disable-userns'],
  ...['--uid', '1000', '--gid', '1000', '--cap-drop', 'ALL', '--new-session', '--die-with-parent'],
  ...['--ro-bind', '/', '/', '--bind', '/workspace', '/workspace', '--bind', '/tmp', '/tmp', '--proc', '/proc'],
  ...['--dev', '/dev', '--size', String(64 * 1024 * 1024), '--tmpfs', '/dev/shm', '--remount-ro', '/dev'],
  ...['--chdir', '/workspace', '--seccomp', '3', '--'],
]

/** Starts a program in a jail of the room. */
export async function startJail(room: Room, program: readonly string[], { fifos, filter, processLimits }: JailParts): Promise<Jail> {
  const { writeEnd, output } = await fifos.open(room.userId)
  output.on('error', () => {})
  let child: ChildProcess
  try {
    child = spawn(
      '/bin/sh',
      [
        // It waits for a line before it starts anything, so that all it starts belongs to the control group.
        ...['-c', `read -r line || exit; ${processLimits}exec nsenter "$@"`, 'sh'],
        ...[
          '--target',
          String(room.pid),
          '--user',
          '--mount',
          '--net',
          '--ipc',
          '--uts',
          '--cgroup',
          '--pid',
          '--preserve-credentials',
          '--',
          'bwrap',
        ],
        ...jailArguments,
        ...program,
      ],
      {
        ...(room.userId === undefined ? {} : { uid: room.userId, gid: room.userId }),
        env: jailEnvironment,
        cwd: '/',
        stdio: ['pipe', writeEnd, 'pipe', 'pipe'],
      },
    )
  } finally {
    closeSync(writeEnd)
  }
  /** A child that was missed while it started has fallen to the room's first process, which has one of its own. */
  async function endOrphans(): Promise<void> {
    for (let pause = 10; !output.closed && !room.hasDied() && pause < 5000; pause *= 2) {
      await sleep(pause)
      for (const orphan of childrenOf(room.pid).slice(1)) for (const each of [orphan, ...descendantsOf(orphan)]) signalTo(each, 'SIGKILL')
    }
  }
  let errors = ''
  const ended = new Promise<JailEnd>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code, signal) => resolve({ exitCode: code ?? 128, signal }))
  })
  ended.catch(() => {})
  const filterPipe = child.stdio[3] as Duplex
  for (const stream of [child.stdin, child.stderr, filterPipe]) stream?.on('error', () => {})
  child.stderr?.on('data', (chunk) => {
    errors = (errors + String(chunk)).slice(-4000)
  })
  if (child.pid === undefined) await ended
  const pid = child.pid!
  room.cgroup.add(pid)
  filterPipe.end(filter)
  filterPipe.resume()
  child.stdin!.write('\n')
  return {
    pid,
    stdin: child.stdin!,
    output,
    errors: () => errors.trim(),
    ended,
    kill() {
      endTree(child)
      void endOrphans()
    },
  }
}

/** Why a program could not be started, as the model reads it. */
export function startFailure(errors: string): ToolError {
  const cause = errors.split('\n').at(-1) || 'it ended before it began'
  return new ToolError(`The command could not be started (${cause}); end processes that still run, or remove files, and try again.`)
}
