import { Bash, type BashOptions, type CustomCommand, defineCommand, latin1FromBytes } from 'just-bash'
import { pythonCommands } from './python.ts'
import type { WorkspaceFiles } from './workspace-files.ts'

export interface SimulatedBashOptions {
  readonly cwd?: string | undefined
  readonly env?: BashOptions['env']
  readonly commands?: readonly CustomCommand[] | undefined
}

/** A simulated bash with nothing of its host: its environment is made up, and there is no network. */
export function createBash(files: WorkspaceFiles, options: SimulatedBashOptions = {}): Bash {
  const { cwd = '/workspace', env, commands = [] } = options
  return new Bash({
    fs: files,
    cwd,
    python: true,
    javascript: true,
    // Python fills a missing `_` with a path of this machine.
    env: { HOME: '/workspace', USER: 'user', LANG: 'C.UTF-8', _: '/usr/bin/env', ...env },
    customCommands: [node, ...pythonCommands, ...commands],
    executionLimits: {
      maxCommandCount: unbounded,
      maxLoopIterations: unbounded,
      maxWorkUnits: unbounded,
      maxOutputSize: unbounded,
      maxInputBytes: unbounded,
      maxExecutionTimeMs: longestTimerMs,
      maxPythonTimeoutMs: longestTimerMs,
      maxJsTimeoutMs: longestTimerMs,
      maxSqliteTimeoutMs: longestTimerMs,
    },
  })
}

/** `node FILE` and `node -e CODE`, by the simulation's own JavaScript. */
const node = defineCommand('node', async (args, { exec, cwd, exportedEnv, stdin }) => {
  const [option, code, ...rest] = args
  const inline = option === '-e' || option === '--eval'
  const printed = option === '-p' || option === '--print'
  const translated = inline ? ['-c', code ?? '', ...rest] : printed ? ['-c', `console.log((${code ?? ''}\n))`, ...rest] : args
  return exec!('js-exec', { args: translated, cwd, env: { ...exportedEnv }, stdin: latin1FromBytes(stdin), stdinKind: 'bytes' })
})

/** Output, files and time are bounded outside of the simulation. */
const unbounded = 2 ** 50
/** The longest delay that Node's timers take. */
const longestTimerMs = 2 ** 31 - 1

export const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
