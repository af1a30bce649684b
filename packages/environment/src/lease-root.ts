import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'

const prefix = 'aworld-train-environment-'

/** Makes the folder that an environment's directories stand in; those of processes that were killed are removed first. */
export function makeLeaseRoot(): string {
  const parent = tmpdir()
  const ownPrefix = `${prefix}${processSpace()}-`
  for (const name of readdirSync(parent)) {
    const pid = name.startsWith(ownPrefix) && Number(/^\d+(?=-)/.exec(name.slice(ownPrefix.length))?.[0])
    if (pid && !isRunning(pid)) removeIfPossible(join(parent, name))
  }
  return mkdtempSync(join(parent, `${ownPrefix}${process.pid}-`))
}

/** Where this process's id means something, as eight hexadecimal digits: containers may share the folder, and each counts its processes itself. */
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

/** What another user of the machine left cannot be removed, and what another start removes now need not be. */
function removeIfPossible(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true, maxRetries: 2 })
  } catch {
    // The folder is in nobody's way.
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
