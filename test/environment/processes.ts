import { readdirSync, readFileSync } from 'node:fs'

/** How long a `sleep` of a test of this process sleeps: an argument that no other process of the machine has. */
export const sleepTime = (index: number) => `${process.pid}${index}.5`

/** Processes of the machine that sleep for so long, in whatever namespace they are. */
export function sleepersOf(time: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && read(`/proc/${name}/cmdline`) === `sleep\0${time}\0`)
    .map(Number)
}

/** What the kernel says of each process below this one that was started by this path. */
export function statusesOf(program: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && read(`/proc/${name}/cmdline`).startsWith(`${program}\0`) && isOurs(Number(name)))
    .map((name) => read(`/proc/${name}/status`))
}

/** Number of processes below this one. */
export const countBelowUs = () => readdirSync('/proc').filter((name) => /^\d+$/.test(name) && isOurs(Number(name))).length

/** Processes below this one that have ended and that nobody has waited for. */
export function unreapedBelowUs(): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && /^State:\s*Z/m.test(read(`/proc/${name}/status`)) && isOurs(Number(name)))
    .map((name) => read(`/proc/${name}/comm`).trim())
}

/** Processes below one, by default this one, whose command line, of words between spaces, fits a pattern. */
export function commandsBelowUs(pattern: RegExp, root = process.pid): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && pattern.test(read(`/proc/${name}/cmdline`).replaceAll('\0', ' ')) && isOurs(Number(name), root))
    .map(Number)
}

function isOurs(pid: number, root = process.pid): boolean {
  try {
    return childOfOurs(pid, root) > 0
  } catch {
    return false
  }
}

/** The process below this one, or below `root`, that a process descends from. */
export function childOfOurs(pid: number, root = process.pid): number {
  for (let current = pid; ; ) {
    const parent = Number(/^PPid:\s*(\d+)/m.exec(read(`/proc/${current}/status`))?.[1])
    if (parent === root) return current
    if (!parent) throw new Error(`Process ${pid} is none of ours.`)
    current = parent
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
