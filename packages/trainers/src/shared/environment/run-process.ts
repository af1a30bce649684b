import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

export interface RunProcessOptions {
  readonly env?: NodeJS.ProcessEnv | undefined
  readonly cwd?: string | undefined
  /** Aborting ends the process and all that it started. */
  readonly signal?: AbortSignal | undefined
  readonly timeoutMs?: number | undefined
  /** Called with each line of stdout and stderr as it arrives. */
  readonly onLine?: ((line: string) => void) | undefined
}

export interface ProcessResult {
  /** Exit code; null if a signal ended it. */
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Most characters of an output's end that are kept. */
const keptCharacters = 64_000

/** Runs a program to its end. Rejects if it cannot start, is aborted, or outlives `timeoutMs`. On POSIX its whole group ends with it. */
export async function runProcess(command: string, args: readonly string[], options: RunProcessOptions = {}): Promise<ProcessResult> {
  const { env = process.env, cwd, signal, timeoutMs, onLine } = options
  const limits = [signal, timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs)].filter((each) => each !== undefined)
  const stop = AbortSignal.any(limits)
  stop.throwIfAborted()
  const ownGroup = process.platform !== 'win32'
  const child = spawn(command, args, { env, cwd, detached: ownGroup, stdio: ['ignore', 'pipe', 'pipe'] })
  const end = () => {
    if (child.pid === undefined) return
    try {
      process.kill(ownGroup ? -child.pid : child.pid, 'SIGKILL')
    } catch {}
  }
  stop.addEventListener('abort', end, { once: true })
  const read = (stream: NodeJS.ReadableStream) => {
    let text = ''
    createInterface({ input: stream }).on('line', (line) => {
      text = `${text}${line}\n`.slice(-keptCharacters)
      onLine?.(line)
    })
    return () => text
  }
  const stdout = read(child.stdout)
  const stderr = read(child.stderr)
  try {
    const code = await new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve))
    stop.throwIfAborted()
    return { code, stdout: stdout(), stderr: stderr() }
  } finally {
    stop.removeEventListener('abort', end)
  }
}
