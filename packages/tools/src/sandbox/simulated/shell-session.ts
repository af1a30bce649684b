import { defineCommand, parse } from 'just-bash'
import type { BoundedOutput } from '../bounded-output.ts'
import { createBash, quote } from './bash.ts'
import type { CommandOutcome } from './messages.ts'
import { refuseCut } from './refuse-cut.ts'
import { createStopSignal } from './stop-signal.ts'
import type { WorkspaceFiles } from './workspace-files.ts'

/** State that a bash takes over from one that has ended. */
interface ShellState {
  readonly folder: string
  readonly exported: Readonly<Record<string, string>>
  readonly variables: Readonly<Record<string, string>>
}

interface ShellCommand {
  /** Statements that bash evaluates one after the other. */
  readonly statements: string[]
  readonly stop: Int32Array
  readonly end: (exitCode: number) => void
}

/**
 * A bash that keeps its state from command to command. A simulated bash forgets everything when a script ends, so one script asks for
 * command after command. A command that is stopped, or that exits, ends the script. The next one goes on in its folder with its variables
 * and functions, but without arrays, aliases and options.
 */
export class ShellSession {
  readonly #files: WorkspaceFiles
  readonly #path: string
  readonly #output: BoundedOutput
  /** Definitions by the name of the function. */
  readonly #functions = new Map<string, string>()
  #state: ShellState = { folder: '/workspace', exported: {}, variables: {} }
  #command: ShellCommand | null = null
  /** Hands the script its next command, if it waits for one. */
  #handOver: ((command: ShellCommand) => void) | null = null
  #wake: () => void = () => {}

  constructor(files: WorkspaceFiles) {
    this.#files = files
    const { path, output } = files.openOutput(() => this.#command?.stop)
    this.#path = path
    this.#output = output
  }

  async execute(text: string, stop: Int32Array): Promise<CommandOutcome> {
    let statements: string[]
    try {
      statements = this.#read(text)
    } catch (error) {
      return { exitCode: 2, output: `bash: ${error instanceof Error ? error.message : error}\n`, omittedBytes: 0 }
    }
    const exitCode = await new Promise<number>((end) => {
      this.#command = { statements, stop, end }
      if (this.#handOver) this.#handOver(this.#command)
      else this.#start()
    })
    return { exitCode, ...this.#output.take() }
  }

  /** Wakes a waiting command that was stopped. */
  wake(): void {
    this.#wake()
  }

  close(): void {
    this.#handOver?.({ statements: ['exit'], stop: new Int32Array(1), end: () => {} })
    this.#files.closeOutput(this.#path)
  }

  /**
   * Returns the statements of a command, and keeps the functions that it defines. The simulation puts the output of a statement before its
   * errors, so statements are evaluated one by one.
   */
  #read(text: string): string[] {
    const script = parse(text)
    refuseCut(script)
    const statements = script.statements.map(({ sourceText = '', pipelines }) => ({ sourceText, node: pipelines[0]?.commands[0] }))
    // The text of a statement lacks its here-document.
    if (text.includes('<<')) return [text]
    for (const { sourceText, node } of statements) if (node?.type === 'FunctionDef') this.#functions.set(node.name, sourceText)
    return statements.map(({ sourceText }) => sourceText)
  }

  #start(): void {
    let status = 0
    let first = true
    const next = defineCommand('__next', async ([previous], context) => {
      if (!first) status = Number(previous)
      if (!first && this.#command?.statements.length === 0) {
        const variables = Object.fromEntries([...context.env].filter(([name]) => isVariable(name)))
        this.#state = { folder: context.cwd, exported: { ...context.exportedEnv }, variables }
        this.#end(status)
      }
      first = false
      const command = this.#command ?? (await new Promise<ShellCommand>((resolve) => (this.#handOver = resolve)))
      this.#handOver = null
      await context.assignShellVariable?.(commandVariable, command.statements.shift() ?? '')
      return { stdout: '', stderr: '', exitCode: 0 }
    })
    const restoreStatus = defineCommand('__status', async () => ({ stdout: '', stderr: '', exitCode: status }))
    const { folder, exported, variables } = this.#state
    const bash = createBash(this.#files, { cwd: folder, env: exported, commands: [next, restoreStatus] })
    const { signal, wake } = createStopSignal(() => this.#command?.stop)
    this.#wake = wake
    const assignments = Object.entries(variables).map(([name, value]) => `${name}=${quote(value)}`)
    const loop = `while __next $?; do __status; eval "$${commandVariable}" >>${this.#path} 2>&1; done`
    const script = [...this.#functions.values(), ...assignments, loop].join('\n')
    bash.exec(script, { rawScript: true, signal }).then(
      ({ exitCode, stdout, stderr }) => {
        // If a limit of the simulation ended the script, its message is here.
        if (!signal.aborted) this.#output.add(Buffer.from(stdout + stderr))
        this.#end(exitCode)
      },
      () => this.#end(1),
    )
  }

  #end(exitCode: number): void {
    const command = this.#command
    this.#command = null
    command?.end(exitCode)
  }
}

const commandVariable = '__command'
/** Variables that a bash sets by itself. */
const bashVariables = new Set([commandVariable, '_', 'PWD', 'OLDPWD', 'OPTIND', 'SHELLOPTS', 'BASHOPTS'])
const isVariable = (name: string) => /^[A-Za-z_]\w*$/.test(name) && !bashVariables.has(name)
