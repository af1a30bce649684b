import { type ChildProcess, spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { orAborted, type WorkspaceLimits } from '@aworld-train/core'
import { jailEnvironment, ownNamespaces, sharedMemoryBytes, systemFiles, systemFolders } from './arguments.ts'
import type { Cgroup } from './cgroups.ts'
import { childrenOf, endTree, signalTo } from './processes.ts'

/** The common part of one workspace's jails: files, a loopback that leads nowhere else, and an end. */
export interface Room {
  /** Its first process. Every process of its jails ends with it. */
  readonly pid: number
  /** User of its processes; this process's own if absent. */
  readonly userId: number | undefined
  readonly limits: WorkspaceLimits
  readonly cgroup: Cgroup
  /** Whether it ended by itself and not by `close`. */
  readonly hasDied: () => boolean
  /** Resolves when every process and mount is gone. */
  close(): Promise<void>
}

export interface RoomOptions {
  readonly userId: number | undefined
  readonly limits: WorkspaceLimits
  readonly cgroup: Cgroup
  /** The binary of Node, if the room's user can read it. */
  readonly nodeBinary: string | undefined
  /** Folders of the machine that it may read, each after its path in the room. */
  readonly folders: readonly (readonly [path: string, folder: string])[]
}

/** Starting takes milliseconds. This allows for a machine under heavy load. */
const startDeadlineMs = 30_000
const endDeadlineMs = 5000

/** Most bytes of a TCP connection's buffer in each direction, if its program asks for no other size. */
const tcpBufferBytes = 106_496

/** What the kernel counts by user, and a workspace might take from others of the same user: its name in /proc/sys, and the most of a room. */
const kernelLimits = {
  'user/max_inotify_instances': '16',
  'user/max_inotify_watches': '16384',
  'user/max_fanotify_groups': '16',
  'user/max_fanotify_marks': '16384',
  'net/ipv4/tcp_rmem': `4096 16384 ${tcpBufferBytes}`,
  'net/ipv4/tcp_wmem': `4096 16384 ${tcpBufferBytes}`,
}

/**
 * Runs in the room as its root and process 1, makes its mounts, and waits: the room lives until its standard input ends. Like every process
 * 1, bash also waits for processes that lost their parent. Each jail leaves one, which counts until it is waited for.
 */
const keeper = `set -e
echo "tmpfs /workspace tmpfs size=$1,nr_inodes=$2,mode=755
tmpfs /tmp tmpfs size=$1,nr_inodes=$2,mode=1777
tmpfs /dev/shm tmpfs size=${sharedMemoryBytes},nr_inodes=$2,mode=1777" > /etc/fstab
mount -a
${Object.entries(kernelLimits)
  .map(([name, most]) => `[ ! -e /proc/sys/${name} ] || echo ${most} > /proc/sys/${name}`)
  .join('\n')}
${Object.entries(systemFiles('/workspace'))
  .map(([path, text]) => `printf '${text}' > ${path}`)
  .join('\n')}
echo ready
read -r line`

/**
 * Opens a room: its own namespaces for users, mounts, network and processes, and only those files of the machine that are listed here. If
 * it rejects, nothing is left of it but its control group.
 */
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
      // If a room is ended while it starts, a process can be missed, which would keep its output open for ever. That process ends with its
      // input.
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
      // bubblewrap ends when the first process has ended, which does so when all below it have.
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

function startKeeper({ userId, limits, nodeBinary, folders }: RoomOptions): ChildProcess {
  const inodes = Math.ceil(limits.diskBytes / 4096)
  return spawn(
    'bwrap',
    [
      ownNamespaces(0),
      ['CAP_SYS_ADMIN', 'CAP_SYS_RESOURCE', 'CAP_NET_ADMIN'].flatMap((name) => ['--cap-add', name]),
      systemFolders(nodeBinary),
      folders.flatMap(([path, folder]) => ['--ro-bind', folder, path]),
      ['--proc', '/proc'],
      ['--dev', '/dev'],
      ['--dir', '/workspace'],
      ['--dir', '/tmp'],
      ['--chdir', '/'],
      ['--', '/bin/bash', '-c', keeper, 'bash', String(limits.diskBytes), String(inodes)],
    ].flat(),
    {
      ...(userId === undefined ? {} : { uid: userId, gid: userId }),
      env: jailEnvironment,
      cwd: '/',
      stdio: 'pipe',
    },
  )
}

/** Resolves to the id of the room's first process as this process sees it. Rejects with bubblewrap's error output. */
function started(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    let errors = ''
    for (const stream of child.stdio) stream?.on('error', () => {})
    // bubblewrap's own report, --info-fd, would end it once nobody reads it any more, while its child still waits for it.
    child.stdout?.once('data', () => {
      const [keeper] = childrenOf(child.pid!)
      if (keeper !== undefined) resolve(keeper)
    })
    child.stderr?.on('data', (chunk) => {
      errors = (errors + String(chunk)).slice(-2000)
    })
    child.once('error', reject)
    child.once('close', (code, signal) => reject(new Error(errors.trim() || `bwrap ended with ${signal ?? `exit code ${code}`}`)))
  })
}
