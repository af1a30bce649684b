import { spawn } from 'node:child_process'
import { existsSync, lchownSync, lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { type ProgramJail, TrainError } from '@aworld-train/core'
import {
  confinement,
  devices,
  jailEnvironment,
  nodeFolder,
  ownNamespaces,
  projectFolder,
  systemFiles,
  systemFolders,
} from '../bubblewrap/arguments.ts'
import { findNodeBinary, nodeNotice } from '../bubblewrap/bubblewrap-sandbox.ts'
import { findCgroups } from '../bubblewrap/cgroups.ts'
import { tieLifeline, withLifeline } from '../bubblewrap/lifeline.ts'
import { defaultLimits, processLimits } from '../bubblewrap/limits.ts'
import { createMemoryWatch } from '../bubblewrap/memory-watch.ts'
import { probeBubblewrap } from '../bubblewrap/probe.ts'
import { descendantsOf, signalTo } from '../bubblewrap/processes.ts'
import { seccompFilter } from '../bubblewrap/seccomp-filter.ts'
import { createUserIds } from '../bubblewrap/user-ids.ts'
import { closedToOthers, outermost, programFiles } from './program-files.ts'
import { fillsFolder } from './watch-folder.ts'

const { memoryBytes, diskBytes, processes } = defaultLimits
/** Processes of a jail besides those of its program. */
const processesOfJail = 8
const nodePath = `${nodeFolder}/node`

const isOfSystem = (path: string) => /^\/(?:usr|bin|sbin|lib|lib64)\//.test(path) && !path.startsWith(`${projectFolder}/`)
const filterFd = 3
const argumentsFd = 4
const lifelineFd = 5
const firstFileFd = 6
const files = Object.entries(systemFiles('/tmp'))

/** Opens the jail of bubblewrap for long-running programs. Rejects with SANDBOX_UNAVAILABLE, which names what is missing. */
export async function openProgramJail(): Promise<ProgramJail> {
  const probe = await probeBubblewrap()
  if (!probe.ok) throw new TrainError('SANDBOX_UNAVAILABLE', probe.reason)
  const cgroups = findCgroups()
  const memoryIsCounted = cgroups.controllers.has('memory')
  const filter = seccompFilter(process.arch, { memoryIsCounted })
  const limits = `${processLimits({ memoryBytes }, memoryIsCounted)}ulimit -f ${diskBytes / 512}; `
  const nextUserId = createUserIds()
  const nodeBinary = findNodeBinary()
  const endings = new Set<Promise<void>>()

  /**
   * The user that programs of a folder run as if this process is root, because the kernel does not count root's processes. A folder
   * of root's becomes that user's.
   */
  function userOf(directory: string | null): number | undefined {
    if (process.getuid?.() !== 0) return undefined
    const owner = directory === null ? 0 : lstatSync(directory).uid
    if (owner !== 0) return owner
    const userId = nextUserId()
    if (directory === null || userId === undefined) return userId
    const below = readdirSync(directory, { recursive: true, encoding: 'utf8' }).map((name) => join(directory, name))
    for (const path of [...below, directory]) lchownSync(path, userId, userId)
    return userId
  }

  return {
    notices: [
      ...(memoryIsCounted ? [] : ['Memory of a jailed server is looked at ten times a second, and not counted by the kernel.']),
      ...(nodeBinary ? [] : [nodeNotice]),
    ],
    spawn({ command, env, directory, readable }) {
      const [program, ...args] = command
      if (program === process.execPath && !nodeBinary) throw new Error(nodeNotice)
      const words = [program === process.execPath ? nodePath : program, ...args]
      const shown = outermost([...programFiles(words), ...readable]).filter((path) => !isOfSystem(path))
      const userId = userOf(directory)
      const closed = userId === undefined ? undefined : shown.map(closedToOthers).find((reason) => reason !== null)
      if (closed) throw new Error(closed)
      const variables = Object.entries({ HOME: directory ?? '/tmp', ...env })
      if (variables.flat().some((text) => text.includes('\0'))) throw new Error('A variable cannot hold a NUL character.')
      const cgroup = cgroups.create({ memoryBytes: memoryBytes + 2 * diskBytes, processes: processes + processesOfJail })
      const child = spawn(
        '/bin/sh',
        [
          // The shell waits for a line before it starts anything, so that all it starts belongs to the control group. It leads the group of
          // processes, to which bubblewrap does not belong: see `ownNamespaces`.
          ['-c', `read -r line || exit; ${limits}setsid bwrap "$@"; exit`, 'sh'],
          ownNamespaces(1000),
          confinement(filterFd),
          ['--args', String(argumentsFd)],
          systemFolders(nodeBinary),
          files.flatMap(([path], index) => ['--ro-bind-data', String(firstFileFd + index), path]),
          ['--proc', '/proc'],
          devices,
          ['--size', String(diskBytes), '--tmpfs', '/tmp'],
          shown.flatMap((path) => ['--ro-bind', path, path]),
          directory === null ? [] : ['--bind', directory, directory],
          existsSync(projectFolder) ? ['--remount-ro', projectFolder] : [],
          ['--remount-ro', '/'],
          ['--chdir', directory ?? '/tmp'],
          ['--', '/bin/bash'],
          withLifeline(lifelineFd, ['/bin/bash', '-c', 'ulimit -u "$1"; shift; exec "$@"', 'bash', String(processes), ...words]),
        ].flat(),
        {
          ...(userId === undefined ? {} : { uid: userId, gid: userId }),
          env: jailEnvironment,
          cwd: '/',
          stdio: Array<'pipe'>(firstFileFd + files.length).fill('pipe'),
          detached: true,
        },
      )
      const over = new AbortController()
      const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()).once('error', () => resolve()))
      void ended.then(() => over.abort())
      const ending = ended.then(() => cgroup.remove()).finally(() => endings.delete(ending))
      endings.add(ending)
      // A program that could not be started reports that in its own event.
      for (const stream of child.stdio) stream?.on('error', () => {})
      if (child.pid === undefined) return child
      tieLifeline(child, lifelineFd)
      cgroup.add(child.pid)
      if (!memoryIsCounted)
        void createMemoryWatch({ processes: () => descendantsOf(child.pid!), limitBytes: () => memoryBytes }).during(ended)
      if (directory !== null)
        void fillsFolder(directory, diskBytes, over.signal).then((isFull) => {
          if (!isFull || over.signal.aborted) return
          child.stderr!.push(`It was ended: it may write ${diskBytes / 2 ** 20} MB to ${directory}, and more came there while it ran.\n`)
          signalTo(-child.pid!, 'SIGKILL')
        })
      const write = (fd: number, data: string | Buffer) => (child.stdio[fd] as Duplex).end(data).resume()
      write(filterFd, filter)
      // Variables do not go among the arguments, which every user of the machine can read.
      write(argumentsFd, variables.flatMap(([name, value]) => ['--setenv', name, value]).join('\0'))
      for (const [index, [, text]] of files.entries()) write(firstFileFd + index, text)
      child.stdin!.write('\n')
      return child
    },
    async close() {
      await Promise.all(endings)
    },
  }
}
