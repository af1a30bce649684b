import { spawn } from 'node:child_process'
import { existsSync, realpathSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Path of npm's own script, for Node to run: that of the parent npm, or of the one on PATH. */
export function findNpm(): string {
  const started = process.env['npm_execpath']
  const onPath = (process.env['PATH'] ?? '')
    .split(delimiter)
    .flatMap((path) => [join(path, 'npm'), join(path, 'node_modules', 'npm', 'bin', 'npm-cli.js')])
    .filter((path) => existsSync(path))
    .map((path) => realpathSync(path))
  const found = [...(started ? [started] : []), ...onPath].find((path) => path.endsWith('npm-cli.js'))
  if (!found) throw new Error('npm was not found; run the tests with "npm test".')
  return found
}

export interface Ended {
  readonly code: number | null
  readonly output: string
}

/** Runs npm in a folder, as if typed there, and resolves to the output of both streams. Rejects if the signal aborts. */
export const runNpm = (args: readonly string[], cwd: string, signal?: AbortSignal): Promise<Ended> =>
  runNode([findNpm(), ...args], cwd, signal)

/** Runs this Node in a folder. */
export async function runNode(args: readonly string[], cwd: string, signal?: AbortSignal): Promise<Ended> {
  const env = { ...process.env, INIT_CWD: cwd, npm_config_loglevel: 'error' }
  const child = spawn(process.execPath, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], signal })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (text) => {
      output += text
    })
  }
  const { promise, resolve, reject } = Promise.withResolvers<number | null>()
  child.on('error', reject).on('close', resolve)
  return { code: await promise, output }
}
