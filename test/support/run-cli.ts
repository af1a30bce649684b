import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { RunEvent } from '@aworld-train/core'

export const repository = fileURLToPath(new URL('../..', import.meta.url))

export interface CliOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  readonly onStart?: (child: ChildProcess) => void
  /** Called with the process and each line of its output on arrival. */
  readonly onLine?: (line: string, child: ChildProcess) => void
  /** Milliseconds after which the process is killed, as the result reports. */
  readonly deadlineMs?: number
}

export interface CliResult {
  /** `null` if a signal ended the process. */
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs `aworld-train` from source in a process of its own, in plain SIMD. */
export async function runCli(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const { cwd = repository, env = {}, onStart, onLine, deadlineMs = 240_000 } = options
  const child = spawn(process.execPath, [join(repository, 'packages/cli/src/main.ts'), ...args], {
    cwd,
    env: { ...process.env, AWORLD_TRAIN_SIMD: 'plain', NO_COLOR: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onStart?.(child)
  const output = { stdout: '', stderr: '' }
  const tails = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text
      const lines = (tails[name] + text).split('\n')
      tails[name] = lines.pop() ?? ''
      if (onLine) for (const line of lines) onLine(line, child)
    })
  }
  const timer = setTimeout(() => child.kill('SIGKILL'), deadlineMs)
  try {
    const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve, reject) =>
      child.on('error', reject).on('close', (...end) => resolve(end)),
    )
    return { code, signal, ...output }
  } finally {
    clearTimeout(timer)
  }
}

/** Parses the events that `--json` printed. Throws for a line that is no event. */
export function parseEvents(stdout: string): RunEvent[] {
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => RunEvent.parse(JSON.parse(line)))
}
