import { Bash, type BashOptions, type CustomCommand, defineCommand, latin1FromBytes, type ScriptNode } from 'just-bash'
import { correctedCommands } from './corrections.ts'
import { ShellEvaluations } from './evaluations.ts'
import { pythonCommands } from './python.ts'
import { rewrite } from './rewrite.ts'
import { scriptCommands } from './scripts.ts'
import type { WorkspaceFiles } from './workspace-files.ts'

export interface SimulatedBashOptions {
  readonly cwd?: string | undefined
  readonly env?: BashOptions['env']
  readonly commands?: readonly CustomCommand[] | undefined
  /** Runs in place of the first script that is executed. It may grow while it runs. */
  readonly script?: ScriptNode | undefined
  readonly evaluations?: ShellEvaluations | undefined
}

/** A simulated bash with nothing of its host. Its environment is made up, and there is no network. */
export function createBash(files: WorkspaceFiles, options: SimulatedBashOptions = {}): Bash {
  const { cwd = '/workspace', env, commands = [], evaluations = new ShellEvaluations() } = options
  let { script } = options
  const bash = new Bash({
    fs: files,
    cwd,
    python: true,
    javascript: true,
    // Python fills a missing `_` with a path of this machine.
    env: { HOME: '/workspace', USER: 'user', LANG: 'C.UTF-8', _: '/usr/bin/env', ...env },
    customCommands: [node, ...pythonCommands, ...correctedCommands, ...scriptCommands, ...evaluations.commands, ...commands],
    executionLimits: {
      maxCommandCount: unbounded,
      maxLoopIterations: unbounded,
      maxWorkUnits: unbounded,
      maxOutputSize: unbounded,
      maxInputBytes: unbounded,
      maxLiveBytes: unbounded,
      maxArrayElements: countless,
      maxBraceExpansionResults: countless,
      maxGlobOperations: countless,
      maxAwkIterations: countless,
      maxAwkParserTokens: countless,
      maxAwkParserOperations: countless,
      maxSedIterations: countless,
      maxJqIterations: countless,
      maxQueryTokens: countless,
      maxQueryElements: countless,
      maxCsvRows: countless,
      maxCsvCells: countless,
      maxTraversalEntries: countless,
      maxTraversalWork: countless,
      maxArchiveEntries: countless,
      maxCallDepth: deepestCall,
      maxExecutionTimeMs: longestTimerMs,
      maxPythonTimeoutMs: longestTimerMs,
      maxJsTimeoutMs: longestTimerMs,
      maxSqliteTimeoutMs: longestTimerMs,
    },
  })
  bash.registerTransformPlugin({
    name: 'rewrite',
    transform({ ast }) {
      const first = script
      script = undefined
      return { ast: first ?? rewrite(ast, evaluations) }
    },
  })
  return bash
}

/** Runs `node FILE` and `node -e CODE` in the simulation's own JavaScript. */
const node = defineCommand('node', async (args, { exec, cwd, exportedEnv, stdin }) => {
  const [option, code, ...rest] = args
  const inline = option === '-e' || option === '--eval'
  const printed = option === '-p' || option === '--print'
  const translated = inline ? ['-c', code ?? '', ...rest] : printed ? ['-c', `console.log((${code ?? ''}\n))`, ...rest] : args
  return exec!('js-exec', { args: translated, cwd, env: { ...exportedEnv }, stdin: latin1FromBytes(stdin), stdinKind: 'bytes' })
})

/** Output, files and time are limited outside of the simulation. */
const unbounded = 2 ** 50
/** The simulation passes these numbers on to functions that take 32 bits. */
const countless = 2 ** 30
/** The stack of a thread holds this depth several times. */
const deepestCall = 1_000
/** The longest delay that Node's timers take. */
const longestTimerMs = 2 ** 31 - 1
