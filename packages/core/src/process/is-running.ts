import { readFileSync } from 'node:fs'

/** Whether a process of this machine runs, whoever owns it. One that has ended counts as ended even before its parent has collected it. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3) !== 'Z'
  } catch {
    // Only Linux shows this.
    return true
  }
}
