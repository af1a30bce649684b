import { readFile, statfs } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { totalmem } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { clusterAddress } from '../config/own-ray.ts'

export interface Space {
  readonly path: string
  readonly freeBytes: number
  readonly totalBytes: number
}

/** Facts of a machine that Ray and checkpoints depend on. */
export interface MachineFacts {
  readonly memoryBytes: number
  /** `/dev/shm`; null if there is none. */
  readonly sharedMemory: Space | null
  /** Disk that runs are written to. */
  readonly disk: Space
  /** Disk of Ray's session. */
  readonly temporary: Space
  /** The cluster of RAY_ADDRESS; null if verl starts a Ray of its own. */
  readonly rayAddress: string | null
  /** Address of a cluster on this machine that answers and that `ray.init()` joins by itself. */
  readonly runningRay: string | null
}

export interface ReadMachineOptions {
  readonly env: NodeJS.ProcessEnv
  /** Folder that runs are written below. It need not exist. */
  readonly directory: string
}

export async function readMachine({ env, directory }: ReadMachineOptions): Promise<MachineFacts> {
  const temporary = env['RAY_TMPDIR'] || '/tmp'
  const [memoryBytes, sharedMemory, disk, temporarySpace, runningRay] = await Promise.all([
    readMemory(),
    readSpace('/dev/shm').catch(() => null),
    readSpace(directory),
    readSpace(temporary),
    findRay(join(temporary, 'ray', 'ray_current_cluster')),
  ])
  return { memoryBytes, sharedMemory, disk, temporary: temporarySpace, rayAddress: clusterAddress(env['RAY_ADDRESS']), runningRay }
}

/** Memory of the machine, or of the container's limit (cgroup 2). */
async function readMemory(): Promise<number> {
  const limit = Number(await readFile('/sys/fs/cgroup/memory.max', 'utf8').catch(() => 'max'))
  return Number.isFinite(limit) && limit > 0 ? Math.min(limit, totalmem()) : totalmem()
}

/** The disk of the nearest folder that exists. */
async function readSpace(path: string): Promise<Space> {
  try {
    const { bavail, blocks, bsize } = await statfs(path)
    return { path, freeBytes: bavail * bsize, totalBytes: blocks * bsize }
  } catch (error) {
    const parent = dirname(resolve(path))
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || parent === path || path === '/dev/shm') throw error
    return { ...(await readSpace(parent)), path }
  }
}

/** The address that Ray (2.60) records for `ray.init()` without one, if something listens there. */
async function findRay(file: string): Promise<string | null> {
  const address = (await readFile(file, 'utf8').catch(() => '')).trim()
  const match = /^(?<host>[^:]+):(?<port>\d+)$/.exec(address)?.groups
  if (!match) return null
  const socket = createConnection({ host: match['host'] as string, port: Number(match['port']), timeout: 1000 })
  try {
    return await new Promise((done) => {
      socket
        .once('connect', () => done(address))
        .once('error', () => done(null))
        .once('timeout', () => done(null))
    })
  } finally {
    socket.destroy()
  }
}
