import { readFileSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { isRunning, TrainError } from '@aworld-train/core'
import { toStoreError } from './store-error.ts'
import { writeJsonAtomically } from './write-json-atomically.ts'

export interface RunLock {
  release(): Promise<void>
}

/** Content of `owner.json`. */
interface Owner {
  readonly pid: number
  /** In clock ticks since the machine started; `null` if the system does not report it. */
  readonly bornAt: number | null
  /** Unix milliseconds. */
  readonly startedAt: number
}

const sqliteBusy = 5

/** Start of a process, in clock ticks since that of the machine: field 22 of proc_pid_stat(5). `null` if the system does not report it. */
function bornAt(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19])
  } catch {
    return null
  }
}

/** Whether the owner runs. Its pid alone does not tell, because a restarted container gives its processes the same ones. */
const isAlive = (owner: Owner) => isRunning(owner.pid) && (typeof owner.bornAt !== 'number' || owner.bornAt === bornAt(owner.pid))

/**
 * Makes this process the one owner of a run directory. The operating system holds the lock, through an open SQLite transaction on a file
 * of its own. It ends with the process, however that dies, so no lock is ever stale. `owner.json` only says who the owner is. Rejects
 * with STORE_LOCKED, naming the pid.
 */
export async function acquireRunLock(path: string): Promise<RunLock> {
  const owner = join(path, 'owner.json')
  let database: DatabaseSync | null = null
  try {
    database = new DatabaseSync(join(path, 'run.lock'), { timeout: 0 })
    database.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    database?.close()
    if (((error as { errcode?: number }).errcode ?? 0) % 256 === sqliteBusy) throw await lockedBy(path, owner)
    throw toStoreError(error, path)
  }
  const connection = database
  try {
    await writeJsonAtomically(owner, { pid: process.pid, bornAt: bornAt(process.pid), startedAt: Date.now() } satisfies Owner)
  } catch (error) {
    connection.close()
    throw toStoreError(error, path)
  }
  return {
    async release() {
      await rm(owner, { force: true }).catch(() => {})
      connection.close()
    },
  }
}

/** Whether a process on this machine works on the run at `path`. */
export function isOwned(path: string): boolean {
  try {
    return isAlive(JSON.parse(readFileSync(join(path, 'owner.json'), 'utf8')) as Owner)
  } catch {
    return false
  }
}

/** The error for a locked run. The owner's name may be written a moment after the lock is taken, so this waits for it. */
async function lockedBy(path: string, owner: string): Promise<TrainError> {
  let pid: number | null = null
  for (let tries = 0; tries < 10 && pid === null; tries++) {
    if (tries > 0) await sleep(30)
    pid = await runningOwner(owner)
  }
  const who = pid === null ? 'another process' : `process ${pid}`
  return new TrainError('STORE_LOCKED', `Run ${path} is in use by ${who}. Wait for it, or start a new run with --new.`, {
    details: { path, pid },
  })
}

async function runningOwner(owner: string): Promise<number | null> {
  try {
    const found = JSON.parse(await readFile(owner, 'utf8')) as Owner
    return isAlive(found) ? found.pid : null
  } catch {
    return null
  }
}
