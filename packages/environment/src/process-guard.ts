import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'

/** Marks listeners of guards, so that several environments in one process do not take each other for the program's own. */
const guardMark = Symbol.for('aworld-train.process-guard')
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Remembers what must not outlive this process, and removes it when the process ends in any way but SIGKILL. */
export interface ProcessGuard {
  addProcess(pid: number): void
  removeProcess(pid: number): void
  addDirectory(path: string): void
  removeDirectory(path: string): void
  close(): void
}

/** Ends a process that was started as the leader of its group, and everything that it started. */
export function killTree(pid: number, signal: 'SIGTERM' | 'SIGKILL'): void {
  try {
    if (process.platform === 'win32') spawnSync('taskkill', ['/pid', String(pid), '/T', '/F'], { stdio: 'ignore', windowsHide: true })
    else process.kill(-pid, signal)
  } catch {
    // The process is already gone.
  }
}

/** Starts guarding; `close` stops it. A signal that the program itself listens to is left to the program. */
export function createProcessGuard(): ProcessGuard {
  const processes = new Set<number>()
  const directories = new Set<string>()
  const clean = () => {
    for (const pid of processes) killTree(pid, 'SIGKILL')
    for (const path of directories) rmSync(path, { recursive: true, force: true, maxRetries: 2 })
  }
  const listeners = signals.map((signal) => {
    const onSignal = () => {
      if (process.listeners(signal).some((other) => !(guardMark in other))) return
      clean()
      process.off(signal, listener)
      process.kill(process.pid, signal)
    }
    const listener = Object.assign(onSignal, { [guardMark]: true })
    process.on(signal, listener)
    return { signal, listener }
  })
  process.on('exit', clean)
  return {
    addProcess: (pid) => void processes.add(pid),
    removeProcess: (pid) => void processes.delete(pid),
    addDirectory: (path) => void directories.add(path),
    removeDirectory: (path) => void directories.delete(path),
    close: () => {
      process.off('exit', clean)
      for (const { signal, listener } of listeners) process.off(signal, listener)
    },
  }
}
