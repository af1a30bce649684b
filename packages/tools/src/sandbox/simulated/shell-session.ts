import { defineCommand, parse, type ScriptNode, type StatementNode } from 'just-bash'
import type { BoundedOutput } from '../bounded-output.ts'
import { quote } from '../quote.ts'
import { shellEnded } from '../shell-ended.ts'
import { createBash } from './bash.ts'
import { ShellEvaluations } from './evaluations.ts'
import type { CommandOutcome } from './messages.ts'
import { readScript } from './read-script.ts'
import { redirected } from './rewrite.ts'
import { createStopSignal, isStopped } from './stop-signal.ts'
import type { WorkspaceFiles } from './workspace-files.ts'

/** State that a bash takes over from one whose command was stopped. */
interface ShellState {
  readonly folder: string
  readonly exported: Readonly<Record<string, string>>
  readonly variables: Readonly<Record<string, string>>
}

interface ShellCommand {
  readonly statements: StatementNode[]
  readonly stop: Int32Array
  readonly end: (exitCode: number) => void
}

const emptyState: ShellState = { folder: '/workspace', exported: {}, variables: {} }

/**
 * A bash that keeps its state from command to command. A simulated bash forgets everything when a script ends, so one script grows by
 * command after command. A command that is stopped ends the script. The next one goes on in its folder with its variables and functions,
 * but without arrays, aliases and options.
 */
export class ShellSession {
  readonly #files: WorkspaceFiles
  readonly #path: string
  readonly #output: BoundedOutput
  readonly #evaluations = new ShellEvaluations()
  /** Definitions by the name of the function. */
  readonly #functions = new Map<string, StatementNode>()
  #state = emptyState
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
    let statements: StatementNode[]
    try {
      statements = readScript(text, this.#evaluations).statements
    } catch (error) {
      return { exitCode: 2, output: `bash: ${error instanceof Error ? error.message : error}\n`, omittedBytes: 0 }
    }
    for (const each of statements) {
      const command = each.pipelines[0]?.commands[0]
      if (command?.type === 'FunctionDef') this.#functions.set(command.name, each)
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
    this.#handOver?.({ statements: parse('exit').statements, stop: new Int32Array(1), end: () => {} })
    this.#files.closeOutput(this.#path)
  }

  #start(): void {
    let first = true
    const next = defineCommand('__next', async ([status, ...pipe], context) => {
      const exitCode = Number(status)
      const mistaken = !first && exitCode === 1 ? this.#output.last.toString() : ''
      if (mistake.test(mistaken)) this.#command?.statements.splice(0)
      if (unbound.test(mistaken)) this.#command?.statements.splice(0, Infinity, ...parse('exit 1').statements)
      if (!first && this.#command?.statements.length === 0) {
        const variables = Object.fromEntries([...context.env].filter(([name]) => isVariable(name)))
        this.#state = { folder: context.cwd, exported: { ...context.exportedEnv }, variables }
        this.#end(exitCode)
      }
      first = false
      const { statements } = this.#command ?? (await new Promise<ShellCommand>((resolve) => (this.#handOver = resolve)))
      this.#handOver = null
      // What has run is not kept.
      script.statements.fill(askNext)
      script.statements.push(...statements.splice(0, 1).map((each) => redirected(each, this.#path)), askNext)
      // The next statement sees the exit codes of the last one, of which \`set -e\` has seen them already.
      const handedOn = context.env.get('SHELLOPTS')?.includes('errexit') ? 0 : exitCode
      return { stdout: '', stderr: '', exitCode: handedOn, internalPipeStatusOverride: pipe.map(Number) }
    })
    const { folder, exported, variables } = this.#state
    const assignments = Object.entries(variables).map(([name, value]) => `${name}=${quote(value)}`)
    const script: ScriptNode = {
      type: 'Script',
      statements: [...this.#functions.values(), ...parse(assignments.join('\n')).statements, askNext],
    }
    const { signal, wake } = createStopSignal(() => this.#command?.stop)
    this.#wake = wake
    const bash = createBash(this.#files, { cwd: folder, env: exported, commands: [next], script, evaluations: this.#evaluations })
    bash.exec(':', { rawScript: true, signal }).then(
      ({ exitCode, stdout, stderr }) => {
        if (!isStopped(this.#command?.stop)) this.#forget(stdout + stderr)
        this.#end(exitCode)
      },
      () => this.#end(1),
    )
  }

  /** Begins anew after a command that ended its bash. If a limit of the simulation ended it, `message` says so. */
  #forget(message: string): void {
    this.#state = emptyState
    this.#functions.clear()
    this.#output.add(Buffer.from(`${message}${shellEnded}`))
  }

  #end(exitCode: number): void {
    const command = this.#command
    this.#command = null
    command?.end(exitCode)
  }
}

// biome-ignore lint/suspicious/noTemplateCurlyInString: this is bash.
const askNext = parse('__next "$?" "${PIPESTATUS[@]}"').statements[0]!

/**
 * In the simulation a command goes on after an expansion that failed. These messages, which lack "bash: ", are of such ones: bash leaves
 * out what remains of the command, and ends after a variable that `set -u` refuses.
 */
const unbound = /^\S+: unbound variable\n$/
const mistake = /^(?:division by 0|exponent less than 0|.*syntax error.*|a number beyond 2\^53.*|\S+: value too great for base.*)\n$/

/** Variables that a bash sets by itself, and those of the simulation. */
const bashVariables = new Set(['_', 'PWD', 'OLDPWD', 'OPTIND', 'SHELLOPTS', 'BASHOPTS'])
const isVariable = (name: string) => /^[A-Za-z_]\w*$/.test(name) && !name.startsWith('__') && !bashVariables.has(name)
