import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { repository } from './run-cli.ts'

export interface StartedCommand {
  readonly process: ChildProcess
  /** Its output so far, on both streams. */
  shown(): string
  /** Resolves when it has printed `text`. Rejects if it ends before that. */
  says(text: string): Promise<void>
  /** The code or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals | null>
}

/** Starts `aworld-train` from source in a process of its own, which runs until it is ended. */
export function startCommand(
  args: readonly string[],
  options: { cwd?: string; env?: Readonly<Record<string, string>> } = {},
): StartedCommand {
  const { cwd = repository, env = {} } = options
  const child = spawn(process.execPath, [join(repository, 'packages/cli/src/main.ts'), ...args], {
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, AWORLD_TRAIN_SIMD: 'plain', ...env },
  })
  let shown = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      shown += text
      child.emit('shown')
    })
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) => child.on('close', (code, signal) => resolve(code ?? signal)))
  return {
    process: child,
    shown: () => shown,
    says: (text) =>
      new Promise((resolve, reject) => {
        const look = () => shown.includes(text) && resolve()
        child.on('shown', look)
        void ended.then(() => (shown.includes(text) ? resolve() : reject(new Error(`It ended without saying "${text}": ${shown}`))))
        look()
      }),
    ended,
  }
}
