import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { repository } from './run-cli.ts'

export interface TerminalOptions {
  readonly columns: number
  readonly cwd?: string
  /** Called with everything shown so far. Its result is typed. */
  readonly onText?: (shown: string) => string | undefined
}

/** Runs a command of the repository at a terminal, as a person would, and resolves to the terminal's output. */
export async function runAtTerminal(
  command: readonly string[],
  { columns, cwd = repository, onText }: TerminalOptions,
): Promise<{ readonly code: number | null; readonly shown: string }> {
  const { CI: _, NO_COLOR: __, ...env } = process.env
  const child = spawn('python3', [join(repository, 'test/support/run-at-terminal.py'), String(columns), ...command], {
    cwd,
    env: { ...env, TERM: 'xterm-256color', AWORLD_TRAIN_SIMD: 'plain' },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let shown = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text
    const typed = onText?.(shown)
    if (typed !== undefined) child.stdin.write(typed)
  })
  const code = await new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve))
  return { code, shown }
}
