import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { isRunning } from './is-running.ts'

/**
 * Makes a folder for this process below the machine's temporary one, and first removes those that killed processes left under this prefix.
 */
export function makeOwnFolder(prefix: string): string {
  const parent = tmpdir()
  for (const name of namesOfDeadProcesses(parent, prefix)) removeIfPossible(join(parent, name))
  return mkdtempSync(join(parent, `${ownName(prefix)}-`))
}

/** A name that identifies its process: prefix, process space, and this process's id. */
export function ownName(prefix: string): string {
  return `${prefix}${processSpace()}-${process.pid}`
}

/** Entries of a folder that have this prefix and the id of a process that has ended. */
export function namesOfDeadProcesses(folder: string, prefix: string): string[] {
  const ownPrefix = `${prefix}${processSpace()}-`
  return readdirSync(folder).filter((name) => {
    const pid = name.startsWith(ownPrefix) && Number(/^\d+(?=-)/.exec(name.slice(ownPrefix.length))?.[0])
    return pid && !isRunning(pid)
  })
}

/**
 * The space in which this process's id is valid, as eight hexadecimal digits. Containers may share the folder, and each counts its
 * processes itself.
 */
export function processSpace(): string {
  return createHash('sha256').update(readProcessSpace()).digest('hex').slice(0, 8)
}

function readProcessSpace(): string {
  try {
    return `${readlinkSync('/proc/self/ns/pid')} ${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8')}`
  } catch {
    return hostname()
  }
}

/** Removes a folder if possible. A folder of another user cannot be removed, and another start may be removing it already. */
function removeIfPossible(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true, maxRetries: 2 })
  } catch {
    // A folder that stays does no harm.
  }
}
