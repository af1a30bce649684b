import { randomBytes } from 'node:crypto'
import { type CommandResult, createWaitingLine, type Program, type Shell, ToolError, type Workspace } from '@aworld-train/core'
import { TrainError } from '@aworld-train/protocol'
import { BoundedOutput } from '../bounded-output.ts'
import { openBashShell } from './bash-shell.ts'
import { type Jail, type JailEnd, type JailParts, startFailure, startJail } from './jail.ts'
import { createMemoryWatch } from './memory-watch.ts'
import { descendantsOf } from './processes.ts'
import type { Room } from './room.ts'
import { fileError, getScript, putScript, toJailPath } from './workspace-files.ts'

/** Programs that run at one time, shells apart; others wait. Each takes four processes of the workspace's number. */
const programsAtOnce = 8
const fileTimeoutMs = 60_000

/** Says that the jail stands, then becomes the program. */
const runScript = 'ulimit -u "$1"; shift; printf . >&2; exec "$@" 2>&1'
const fileScript = (script: string) => `printf . >&2; ${script}`

/** A workspace in a room that has been opened for it. Where no control group counts its memory, it is watched. */
export function createWorkspace(room: Room, parts: JailParts, memoryIsCounted: boolean): Workspace {
  const { limits } = room
  const line = createWaitingLine<undefined, undefined>()
  const running = new Set<Jail>()
  const shells = new Set<Shell>()
  const processes = () => [...running].flatMap((jail) => descendantsOf(jail.pid))
  const watch = memoryIsCounted ? undefined : createMemoryWatch(processes, limits.memoryBytes)
  const watched = <Value>(work: Promise<Value>) => watch?.during(work) ?? work
  let programs = 0
  let closing: Promise<void> | undefined
  let dead = false

  function check(): void {
    if (closing) throw new ToolError('The workspace is closed.')
    if (dead || room.hasDied()) throw death()
  }
  const death = () => new TrainError('TOOL_SERVER_DIED', 'The jail of the workspace died; its files and shells are gone.')

  async function start(program: readonly string[]): Promise<Jail> {
    check()
    let jail: Jail
    try {
      jail = await startJail(room, program, parts)
    } catch (error) {
      check()
      throw error
    }
    running.add(jail)
    jail.ended.then(() => running.delete(jail))
    if (closing || dead) jail.kill()
    return jail
  }

  /** A jail that something outside ended, or that ended with its room: nothing of the workspace goes on. */
  async function died(): Promise<Error> {
    if (closing) return new ToolError('The workspace is closed.')
    dead = true
    for (const jail of running) jail.kill()
    return death()
  }

  interface Run {
    readonly end: JailEnd
    readonly timedOut: boolean
    readonly errors: string
  }

  /** Runs a program to its end, with its output handed on as it comes. */
  async function run(
    program: readonly string[],
    input: string | Uint8Array,
    timeoutMs: number,
    signal: AbortSignal,
    onOutput: (chunk: Buffer) => void,
  ): Promise<Run> {
    check()
    if (programs >= programsAtOnce) await line.wait(undefined, signal)
    else programs++
    try {
      signal.throwIfAborted()
      const jail = await start(program)
      let timedOut = false
      const onAbort = () => jail.kill()
      const timer = setTimeout(() => {
        timedOut = true
        jail.kill()
      }, timeoutMs)
      signal.addEventListener('abort', onAbort, { once: true })
      if (signal.aborted) onAbort()
      try {
        jail.output.on('data', onOutput)
        jail.stdin.end(input)
        const [end] = await Promise.all([jail.ended, new Promise((resolve) => jail.output.once('close', resolve))])
        signal.throwIfAborted()
        if (end.signal && !timedOut) throw await died()
        check()
        if (!jail.errors().startsWith('.') && !timedOut) throw startFailure(jail.errors())
        return { end, timedOut, errors: jail.errors().slice(1) }
      } finally {
        clearTimeout(timer)
        signal.removeEventListener('abort', onAbort)
      }
    } finally {
      if (line.size() > 0) line.admit(undefined)
      else programs--
    }
  }

  /** Runs a script on a file; what it prints is kept whole. */
  async function onFile(script: string, path: string, args: readonly string[], input: Uint8Array, signal: AbortSignal): Promise<Buffer> {
    const chunks: Buffer[] = []
    const program = ['/bin/bash', '-c', fileScript(script), 'bash', toJailPath(path), ...args]
    const { end, timedOut, errors } = await run(program, input, fileTimeoutMs, signal, (chunk) => chunks.push(chunk))
    if (timedOut) throw new ToolError(`Reading or writing ${JSON.stringify(path)} took longer than ${fileTimeoutMs / 1000} s.`)
    if (end.exitCode !== 0) throw fileError(path, end.exitCode, errors)
    return Buffer.concat(chunks)
  }

  return {
    async run({ command, stdin, timeoutMs }: Program, signal): Promise<CommandResult> {
      if (command.some((word) => word.includes('\0'))) throw new ToolError('An argument cannot hold a NUL character.')
      const output = new BoundedOutput(limits.outputBytes)
      const program = [
        '/bin/bash',
        '-c',
        stdin === undefined ? `${runScript} </dev/null` : runScript,
        'bash',
        String(limits.processes),
        ...command,
      ]
      const { end, timedOut } = await watched(run(program, stdin ?? '', timeoutMs, signal, (chunk) => output.add(chunk)))
      return { exitCode: timedOut ? 124 : end.exitCode, ...output.take(), timedOut }
    },
    async shell(signal) {
      check()
      const shell = await openBashShell({ start, died, outputBytes: limits.outputBytes, processes: limits.processes }, signal)
      shells.add(shell)
      return {
        execute: async (command, timeoutMs, signal) => {
          check()
          return watched(shell.execute(command, timeoutMs, signal))
        },
        async close() {
          shells.delete(shell)
          await shell.close()
        },
      }
    },
    async put(path, bytes, signal) {
      await onFile(putScript, path, [`.put-${randomBytes(8).toString('hex')}`], bytes, signal)
    },
    async get(path, maxBytes, signal) {
      const bytes = await onFile(getScript, path, [String(maxBytes + 1)], Buffer.alloc(0), signal)
      if (bytes.length > maxBytes) throw new ToolError(`${JSON.stringify(path)} is larger than ${maxBytes} bytes.`)
      return bytes
    },
    close() {
      closing ??= (async () => {
        await room.close()
        await Promise.allSettled([...running].map((jail) => jail.ended))
      })()
      return closing
    },
  }
}
