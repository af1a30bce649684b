import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { namesOfDeadProcesses, ownName } from '@aworld-train/core'

const prefix = 'aworld-train-sandbox-'

/** Most memory of a group's network buffers. In version 1 they are not part of its memory, and their sum slows all connections of the machine. */
const networkBufferBytes = 64 * 1024 * 1024

export interface GroupLimits {
  readonly memoryBytes: number
  readonly processes: number
}

/** The kernel's count and limit of what some processes use together. */
export interface Cgroup {
  /** Adds a process. Processes that it starts later belong to the group too. */
  add(pid: number): void
  /** Raises the limits; negative numbers lower them. Memory that is in use stays allowed. */
  allow(more: Partial<GroupLimits>): void
  /** Removes the group, of which every process must have ended. */
  remove(): Promise<void>
}

export type Controller = 'memory' | 'pids'

export interface Cgroups {
  readonly controllers: ReadonlySet<Controller>
  create(limits: GroupLimits): Cgroup
}

interface Place {
  readonly folder: string
  readonly version: 1 | 2
}

/** Finds the control groups that this process may make: those of version 2, else those of version 1, else none. */
export function findCgroups(membership: string = read('/proc/self/cgroup'), mounts: string = read('/proc/self/mountinfo')): Cgroups {
  const places = new Map<Controller, Place>()
  for (const controller of ['memory', 'pids'] as const) {
    const place = candidates(controller, membership, mounts).find((candidate) => isUsable(controller, candidate))
    if (place) places.set(controller, place)
  }
  for (const { folder } of places.values()) {
    for (const name of namesOfDeadProcesses(folder, prefix)) tryTo(() => rmdirSync(join(folder, name)))
  }
  return {
    controllers: new Set(places.keys()),
    create(limits) {
      const name = `${ownName(prefix)}-${randomBytes(4).toString('hex')}`
      const folders = new Set<string>()
      for (const [controller, place] of places) {
        const folder = join(place.folder, name)
        if (!folders.has(folder)) mkdirSync(folder)
        folders.add(folder)
        bound(controller, place.version, folder, limits)
      }
      let { memoryBytes, processes } = limits
      return {
        allow(more) {
          memoryBytes += more.memoryBytes ?? 0
          processes += more.processes ?? 0
          for (const [controller, { folder, version }] of places)
            tryTo(() => bound(controller, version, join(folder, name), { memoryBytes, processes }))
        },
        add(pid) {
          for (const folder of folders) writeFileSync(join(folder, 'cgroup.procs'), String(pid))
        },
        async remove() {
          for (const folder of folders) {
            // The kernel releases ended processes a moment later.
            for (let tries = 0; !tryTo(() => rmdirSync(folder)) && tries < 50; tries++) await sleep(10)
          }
        },
      }
    },
  }
}

function bound(controller: Controller, version: 1 | 2, folder: string, { memoryBytes, processes }: GroupLimits): void {
  const write = (file: string, value: number) => writeFileSync(join(folder, file), String(value))
  if (controller === 'pids') write('pids.max', processes)
  else if (version === 2) {
    write('memory.max', memoryBytes)
    tryTo(() => write('memory.swap.max', 0))
  } else {
    // The limit with swap is never below the one without, so it is the first to be raised and the last to be lowered.
    tryTo(() => write('memory.memsw.limit_in_bytes', memoryBytes))
    write('memory.limit_in_bytes', memoryBytes)
    tryTo(() => write('memory.memsw.limit_in_bytes', memoryBytes))
    tryTo(() => write('memory.kmem.tcp.limit_in_bytes', networkBufferBytes))
  }
}

/**
 * Folders in which groups may be made: below our own group, and in version 2 below the groups above it, because processes
 * may not be beside groups there.
 */
function candidates(controller: Controller, membership: string, mounts: string): Place[] {
  const places: Place[] = []
  for (const line of membership.split('\n')) {
    const [, names, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? []
    if (names === undefined || path === undefined) continue
    const version = names === '' ? 2 : 1
    if (version === 1 && !names.split(',').includes(controller)) continue
    for (const { root, point } of cgroupMounts(mounts, version, controller)) {
      const own = path.startsWith(root) ? join(point, path.slice(root.length)) : point
      if (version === 1) places.push({ folder: own, version }, { folder: point, version })
      else for (let folder = own; folder.startsWith(point); folder = dirname(folder)) places.push({ folder, version })
    }
  }
  return places.sort((one, other) => other.version - one.version)
}

function cgroupMounts(mounts: string, version: 1 | 2, controller: Controller): { root: string; point: string }[] {
  return mounts.split('\n').flatMap((line) => {
    const [before, after] = line.split(' - ')
    const [type, , options] = after?.split(' ') ?? []
    const [, , , root, point] = before?.split(' ') ?? []
    const fits = version === 2 ? type === 'cgroup2' : type === 'cgroup' && options?.split(',').includes(controller)
    return fits && root !== undefined && point !== undefined ? [{ root: root === '/' ? '' : root, point }] : []
  })
}

/** Whether groups can be made here. Only a trial shows missing rights, a read-only mount or a group that holds processes. */
function isUsable(controller: Controller, { folder, version }: Place): boolean {
  const trial = join(folder, `${ownName(prefix)}-trial-${controller}`)
  if (version === 2) {
    const control = join(folder, 'cgroup.subtree_control')
    const handedOn = read(control).split(/\s+/)
    if (!handedOn.includes(controller) && !tryTo(() => writeFileSync(control, `+${controller}`))) return false
  }
  if (!tryTo(() => mkdirSync(trial))) return false
  try {
    return tryTo(() => bound(controller, version, trial, { memoryBytes: 64 * 1024 * 1024, processes: 16 }))
  } finally {
    tryTo(() => rmdirSync(trial))
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function tryTo(work: () => void): boolean {
  try {
    work()
    return true
  } catch {
    return false
  }
}
