import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type CommandResult, orAborted, type Shell, ToolError } from '@aworld-train/core'
import { BoundedOutput, type OutputText } from '../bounded-output.ts'
import { shellEnded } from '../shell-ended.ts'
import { type Jail, startFailure } from './jail.ts'
import { MarkedOutput } from './marked-output.ts'
import { childrenOf, descendantsOf, signalTo } from './processes.ts'
import type { WorkspaceState } from './workspace-state.ts'

/** How long a command may take to end once it is told to. After that its bash is ended. */
const interruptDeadlineMs = 1500
const interruptPauseMs = 20

/**
 * Descriptors on which bash writes the output and the end of commands, and from which it reads a command. They are so high that
 * no script uses them by chance.
 */
const outputDescriptor = 250
const commandDescriptor = 249

/** Bash's name of a command that it reads, at the beginning of its messages about it. */
const commandName = new RegExp(`^/dev/fd/${commandDescriptor}: `, 'gm')

/**
 * A signal that no script traps by chance. On it, bash leaves the function that it is in, and before each following command the next one.
 */
const leaveSignal = 64
const leave = `set -T; trap "return 124" DEBUG; return 124`
const stay = 'trap - DEBUG; set +T'

export interface BashShellOptions {
  readonly outputBytes: number
  readonly processes: number
  /** Starts a bash in a jail of its own, or rejects because the workspace is closed or dead. */
  start(): Promise<Jail>
  readonly state: Pick<WorkspaceState, 'die' | 'contained'>
}

/** Opens a persistent bash. */
export async function openBashShell(options: BashShellOptions, signal: AbortSignal): Promise<Shell> {
  let bash: Bash | undefined = await orAborted(startBash(options), signal)
  let closed = false
  let last: Promise<unknown> = Promise.resolve()

  async function execute(command: string, timeoutMs: number, signal: AbortSignal): Promise<CommandResult> {
    let note = ''
    if (bash?.hasEnded()) {
      if ((await bash.end()).signal) throw options.state.die()
      bash = undefined
      note = shellEnded
    }
    bash ??= await startBash(options)
    const current = bash
    const { exitCode, text, timedOut } = await current.run(command, timeoutMs, signal)
    if (exitCode === null) bash = undefined
    const end = exitCode === null ? await current.end() : undefined
    if (end?.signal && !current.wasKilled()) throw options.state.die()
    signal.throwIfAborted()
    const output = text.output.replaceAll(commandName, 'bash: ')
    const before = output === '' || output.endsWith('\n') ? output : `${output}\n`
    return {
      exitCode: timedOut ? 124 : (exitCode ?? end!.exitCode),
      output: `${note}${end ? `${before}${shellEnded}` : output}`,
      omittedBytes: text.omittedBytes,
      timedOut,
    }
  }

  return {
    execute(command, timeoutMs, signal) {
      if (command.includes('\0')) return Promise.reject(new ToolError('A command cannot hold a NUL character.'))
      const turn = orAborted(last, signal).then(() => {
        signal.throwIfAborted()
        if (closed) throw new ToolError('The shell is closed.')
        return execute(command, timeoutMs, signal)
      })
      last = Promise.allSettled([last, turn])
      return turn
    },
    async close() {
      closed = true
      bash?.kill()
      await bash?.end()
    },
  }
}

interface CommandEnd {
  /** Null if bash ended with the command. */
  readonly exitCode: number | null
  readonly text: OutputText
}

/** One process of bash, from its start to its end. */
interface Bash {
  run(command: string, timeoutMs: number, signal: AbortSignal): Promise<CommandEnd & { readonly timedOut: boolean }>
  hasEnded(): boolean
  wasKilled(): boolean
  kill(): void
  /** Resolves when all that it started has ended. */
  end(): ReturnType<typeof untilEmpty>
}

async function startBash({ start, state, outputBytes, processes }: BashShellOptions): Promise<Bash> {
  const jail = await start()
  const output = new BoundedOutput(outputBytes)
  let killed = false
  let onEnd: (end: CommandEnd) => void = () => {}
  let lastExitCode = 0
  const marked = new MarkedOutput(output, (result) => {
    lastExitCode = Number(result)
    onEnd({ exitCode: lastExitCode, text: output.take() })
  })
  const end = untilEmpty(jail)
  jail.output.on(
    'data',
    state.contained((chunk: Buffer) => marked.add(chunk)),
  )
  jail.ended.then(
    // Its last output must still be read, even if nobody waits for a command.
    () => jail.output.resume(),
    () => {},
  )
  end.then(
    () => {
      marked.end()
      onEnd({ exitCode: null, text: output.take() })
    },
    () => {},
  )

  /** Sends a script to bash, and resolves when it has ended. */
  const send = (script: string, mark = randomBytes(16).toString('hex')) =>
    new Promise<CommandEnd>((resolve) => {
      onEnd = resolve
      // No output contains 128 random bits by chance or by guess.
      marked.expect(`\x1e${mark} `)
      jail.output.resume()
      jail.stdin.write(`${script}\nprintf '\\x1e%s %d\\n' ${mark} "$?" >&${outputDescriptor}\n`)
    })

  const started = await send(
    `exec ${outputDescriptor}>&1 2>/dev/null; ulimit -u ${processes}; shopt -s execfail expand_aliases; trap '${leave}' ${leaveSignal}`,
  )
  if (started.exitCode === null) throw startFailure(jail.errors())
  jail.output.pause()

  const init = jail.firstProcess() ?? 0
  const shell = childrenOf(init)[0]

  return {
    hasEnded: jail.hasEnded,
    wasKilled: () => killed,
    kill() {
      killed = true
      void jail.kill()
    },
    end: () => end,
    async run(command, timeoutMs, signal) {
      // Background processes of earlier commands stay when this one is ended.
      const before = new Set(shell === undefined ? [] : [...childrenOf(shell), ...childrenOf(init)].filter((pid) => pid !== shell))
      const ofCommand = () => descendantsOf(init, before).filter((pid) => pid !== shell)
      let done = false
      let timedOut = false
      // Bash reads the command as a script, which a trap can leave at any depth of loops. The marked end cannot be part of it.
      const mark = randomBytes(16).toString('hex')
      const status = lastExitCode === 0 ? '' : `(exit ${lastExitCode}); `
      const result = send(
        `${status}. /dev/fd/${commandDescriptor} ${commandDescriptor}<<'${mark}' </dev/null >&${outputDescriptor} 2>&${outputDescriptor}\n${command}\n${mark}`,
      ).finally(() => {
        done = true
      })
      let interruption: Promise<void> | undefined
      const interrupt = () => {
        interruption ??= (async () => {
          const deadline = performance.now() + interruptDeadlineMs
          for (let round = 0; !done && !jail.hasEnded() && performance.now() < deadline; round++) {
            // Bash gets its signal first: it leaves when the program that it waits for has ended, and starts no other.
            if (shell !== undefined) signalTo(shell, leaveSignal)
            if (round === 0) for (const pid of ofCommand()) signalTo(pid, 'SIGTERM')
            else endAll(ofCommand())
            await Promise.race([result, sleep(interruptPauseMs)])
          }
          if (done || jail.hasEnded()) return
          killed = true
          await jail.kill()
        })()
      }
      const timer = setTimeout(() => {
        timedOut = true
        interrupt()
      }, timeoutMs)
      signal.addEventListener('abort', interrupt, { once: true })
      if (signal.aborted) interrupt()
      try {
        return { ...(await result), timedOut }
      } finally {
        clearTimeout(timer)
        signal.removeEventListener('abort', interrupt)
        if (!jail.hasEnded()) jail.output.pause()
        await interruption
        if (interruption) jail.stdin.write(`${stay}\n`)
        // Ends programs of the command that bash did not wait for.
        for (let left = ofCommand(); interruption && left.length > 0; left = ofCommand()) {
          endAll(left)
          await sleep(interruptPauseMs / 4)
        }
      }
    },
  }
}

/** Ends processes. They are stopped first, so that none starts others while the rest is ended. */
function endAll(pids: readonly number[]): void {
  for (const pid of pids) signalTo(pid, 'SIGSTOP')
  for (const pid of pids) signalTo(pid, 'SIGKILL')
}

/** Resolves to the end of a jail once no process of it is left and its output is read. */
async function untilEmpty(jail: Jail) {
  const [end] = await Promise.all([jail.ended, new Promise<void>((resolve) => jail.output.once('close', () => resolve()))])
  return end
}
