import { accessSync, constants, existsSync, realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { ProgramProfile, Sandbox, Workspace, WorkspaceLimits } from '@aworld-train/core'
import { createReadyWorkspaces } from '../ready-workspaces.ts'
import type { ReadableFolders } from '../tier.ts'
import { type Cgroups, findCgroups } from './cgroups.ts'
import { createFifos } from './fifos.ts'
import { type JailProfile, startJail } from './jail.ts'
import { defaultLimits, processLimits } from './limits.ts'
import { openRoom } from './room.ts'
import { seccompFilter } from './seccomp-filter.ts'
import { createUserIds } from './user-ids.ts'
import { createWorkspace, type RoomWorkspace } from './workspace.ts'

/** Processes of a workspace besides those of its commands: the keeper of the room, and the processes that hold the jail of each program. */
const processesOfJails = 64

/** Opens the tier of the kernel's namespaces. It leaves no process running before a workspace is asked for. */
export async function openBubblewrapSandbox(notices: readonly string[] = [], readable: ReadableFolders = {}): Promise<Sandbox> {
  const cgroups = findCgroups()
  const memoryIsCounted = cgroups.controllers.has('memory')
  const nextUserId = createUserIds()
  const nodeBinary = findNodeBinary()
  const folders = Object.entries(readable).filter(([, folder]) => isReadable(folder))
  const fifos = createFifos()
  const open = new Set<Workspace>()
  const ready = createReadyWorkspaces({ open: openWorkspace, count: 2, pauseMs: 100 })

  async function openWorkspace(limits: WorkspaceLimits, signal: AbortSignal): Promise<RoomWorkspace> {
    const cgroup = cgroups.create({
      // Files also take memory.
      memoryBytes: limits.memoryBytes + 2 * limits.diskBytes,
      processes: limits.processes + processesOfJails,
    })
    const profile = (name: ProgramProfile): JailProfile => ({
      filter: seccompFilter(process.arch, { memoryIsCounted, profile: name }),
      processLimits: processLimits(name === 'command' ? limits : { memoryBytes: limits.memoryBytes }, memoryIsCounted, name),
    })
    const parts = { fifos, profiles: { command: profile('command'), graphical: profile('graphical') } }
    const userId = nextUserId()
    const opening = openRoom({ userId, limits, cgroup, nodeBinary, folders }, signal)
    const firstJail = startJail({ userId, cgroup, room: opening }, parts)
    firstJail.catch(() => {})
    try {
      return createWorkspace(await opening, firstJail, parts, memoryIsCounted)
    } catch (error) {
      await Promise.allSettled([firstJail])
      await cgroup.remove()
      throw error
    }
  }

  return {
    tier: 'bubblewrap',
    notices: [
      ...notices,
      ...missingLimits(cgroups),
      ...(nodeBinary ? [] : [nodeNotice]),
      ...(pythonPaths.some(isExecutable) ? [] : [pythonNotice]),
    ],
    async workspace(options, signal) {
      signal.throwIfAborted()
      const limits = { ...defaultLimits, ...options.limits }
      const workspace = ready.take(limits) ?? (await openWorkspace(limits, signal))
      workspace.setVariables(options.env ?? {})
      const close = workspace.close
      const own: Workspace = {
        ...workspace,
        async close() {
          open.delete(own)
          await close()
        },
      }
      open.add(own)
      return own
    },
    async close() {
      await Promise.all([...[...open].map((workspace) => workspace.close()), ready.close()])
      await fifos.close()
    },
  }
}

function missingLimits({ controllers }: Cgroups): string[] {
  const missing = [
    ...(controllers.has('memory')
      ? []
      : ['Memory of a workspace is looked at ten times a second while a program of it runs, and not counted by the kernel']),
    ...(controllers.has('pids') ? [] : ['Processes are counted for each shell, not for all of a workspace together']),
  ]
  return missing.map((what) => `${what}: this process may make no control group; run it as root, or in a delegated group.`)
}

/** Places where commands find Python, whatever the PATH of this process. */
const pythonPaths = ['/usr/local/bin/python3', '/usr/bin/python3']
const pythonNotice = 'Commands do not find Python; install it below /usr: apt-get install python3'

export const nodeNotice = `Commands do not find Node: the users that they run as cannot read ${process.execPath}; install Node below /usr.`

/** The binary of this process's Node, if every user may run it. */
export function findNodeBinary(): string | undefined {
  const path = realpathSync(process.execPath)
  return isReadable(path) ? path : undefined
}

/** Whether the user of a workspace may enter a folder or run a program, which as root's is another one than that of this process. */
function isReadable(path: string): boolean {
  if (process.getuid?.() !== 0) return isExecutable(path)
  if (!existsSync(path)) return false
  for (let part = path; ; part = dirname(part)) {
    if ((statSync(part).mode & 0o001) === 0) return false
    if (part === dirname(part)) return true
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
