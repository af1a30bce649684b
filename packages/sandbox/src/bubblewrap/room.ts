import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, lstatSync, readlinkSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { WorkspaceLimits } from '@aworld-train/core'
import { orAborted } from '@aworld-train/core'
import type { Cgroup } from './cgroups.ts'
import { endTree, signalTo } from './processes.ts'

/** What one workspace's jails have in common: files, a loopback that leads nowhere else, and an end. */
export interface Room {
  /** Its first process. Every process of its jails ends with it. */
  readonly pid: number
  /** The user that its processes run as; this process's own where absent. */
  readonly userId: number | undefined
  readonly limits: WorkspaceLimits
  readonly cgroup: Cgroup
  /** Whether `close` was not what ended it. */
  readonly hasDied: () => boolean
  /** Resolves when every process and mount is gone. */
  close(): Promise<void>
}

export interface RoomOptions {
  readonly userId: number | undefined
  readonly limits: WorkspaceLimits
  readonly cgroup: Cgroup
  /** The binary of Node, where the room's user can read it. */
  readonly nodeBinary: string | undefined
  /** Files and folders that are seen as on the machine, read-only. */
  readonly readable?: readonly string[] | undefined
}

/** Where images of Node have the user's project, with its keys: no part of the system. */
export const projectFolder = '/usr/src'

/** The environment of every program in a jail, from its first process on: that of a parent could be read through /proc. */
export const jailEnvironment = {
  PATH: '/opt/node/bin:/usr/local/bin:/usr/bin:/bin',
  HOME: '/workspace',
  USER: 'agent',
  LANG: 'C.UTF-8',
  TERM: 'dumb',
}

/** Starting takes milliseconds; a machine under heavy load gets its time. */
const startDeadlineMs = 30_000
const endDeadlineMs = 5000

/**
 * Runs in the room as its root and first process, makes its mounts, and waits: the room lives until its standard input ends, which this
 * process's end is too. bubblewrap's own way, --die-with-parent, ends bubblewrap itself first, and one that is ended while it starts leaves a
 * child that waits for it for ever.
 */
const keeper = `set -e
echo "tmpfs /workspace tmpfs size=$1,nr_inodes=$2,mode=755
tmpfs /tmp tmpfs size=$1,nr_inodes=$2,mode=1777" > /etc/fstab
mount -a
echo 'root:x:0:0:root:/:/bin/sh
agent:x:1000:1000:agent:/workspace:/bin/bash' > /etc/passwd
echo 'root:x:0:
agent:x:1000:' > /etc/group
echo '127.0.0.1 localhost
::1 localhost' > /etc/hosts
echo ready
read -r line`

/** Opens a room, or rejects with nothing of it left but its control group: namespaces of its own for users, mounts, network and processes, and of the machine's files only what is listed here. */
export async function openRoom(options: RoomOptions, signal: AbortSignal): Promise<Room> {
  const { userId, limits, cgroup } = options
  let child: ChildProcess | undefined
  try {
    signal.throwIfAborted()
    child = startKeeper(options)
    if (child.pid !== undefined) cgroup.add(child.pid)
    const pid = await orAborted(started(child), AbortSignal.any([signal, AbortSignal.timeout(startDeadlineMs)]))
    return toRoom(child, pid, { userId, limits, cgroup })
  } catch (error) {
    if (child?.pid !== undefined) {
      // Of a room that is ended while it starts a process can be missed, and would keep its output open for ever. It ends with its input.
      child.stdin?.end()
      await Promise.race([closed(child), sleep(endDeadlineMs, null, { ref: false })])
      endTree(child)
      await closed(child)
    }
    throw error
  }
}

function toRoom(child: ChildProcess, pid: number, parts: Pick<Room, 'userId' | 'limits' | 'cgroup'>): Room {
  const gone = closed(child)
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null
  let closing = false
  return {
    pid,
    ...parts,
    hasDied: () => !closing && hasEnded(),
    async close() {
      closing = true
      // bubblewrap ends when the first process has, and that has when all below it have.
      if (!hasEnded()) signalTo(pid, 'SIGKILL')
      await gone
      await parts.cgroup.remove()
    },
  }
}

/** Resolves when a process has ended and nobody writes to its streams any more. */
function closed(child: ChildProcess): Promise<void> {
  const streams = child.stdio.every((stream) => stream === null || stream === undefined || stream.closed)
  const hasEnded = child.exitCode !== null || child.signalCode !== null
  return hasEnded && streams ? Promise.resolve() : new Promise((resolve) => child.once('close', () => resolve()))
}

function startKeeper({ userId, limits, nodeBinary, readable = [] }: RoomOptions): ChildProcess {
  const inodes = Math.ceil(limits.diskBytes / 4096)
  return spawn(
    'bwrap',
    [
      ...['--unshare-all', '--unshare-user', '--hostname', 'workspace', '--uid', '0', '--gid', '0', '--cap-add', 'CAP_SYS_ADMIN'],
      ...['--as-pid-1', '--ro-bind', '/usr', '/usr', ...['/bin', '/sbin', '/lib', '/lib64'].flatMap(systemFolder)],
      ...['--ro-bind-try', '/etc/alternatives', '/etc/alternatives', '--ro-bind-try', '/etc/ld.so.cache', '/etc/ld.so.cache'],
      ...(existsSync(projectFolder) ? ['--tmpfs', projectFolder] : []),
      ...(nodeBinary ? ['--ro-bind', nodeBinary, '/opt/node/bin/node'] : []),
      ...readable.flatMap((path) => ['--ro-bind', path, path]),
      ...['--proc', '/proc', '--dev', '/dev', '--dir', '/workspace', '--dir', '/tmp', '--chdir', '/', '--info-fd', '3', '--'],
      ...['/bin/sh', '-c', keeper, 'sh', String(limits.diskBytes), String(inodes)],
    ],
    {
      ...(userId === undefined ? {} : { uid: userId, gid: userId }),
      env: jailEnvironment,
      cwd: '/',
      stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
    },
  )
}

/** A folder beside /usr: a link into it on most systems. */
function systemFolder(path: string): string[] {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (!stat) return []
  return stat.isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path]
}

/** Resolves with the first process of the room as this process sees it; rejects with what bubblewrap wrote. */
function started(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    let info = ''
    let output = ''
    let errors = ''
    const onData = () => {
      const pid = /"child-pid": (\d+)/.exec(info)?.[1]
      if (pid !== undefined && output.includes('ready')) resolve(Number(pid))
    }
    for (const stream of child.stdio) stream?.on('error', () => {})
    child.stdio[3]?.on('data', (chunk) => {
      info += String(chunk)
      onData()
    })
    child.stdout?.on('data', (chunk) => {
      output += String(chunk)
      onData()
    })
    child.stderr?.on('data', (chunk) => {
      errors = (errors + String(chunk)).slice(-2000)
    })
    child.once('error', reject)
    child.once('close', (code, signal) => reject(new Error(errors.trim() || `bwrap ended with ${signal ?? `exit code ${code}`}`)))
  })
}
