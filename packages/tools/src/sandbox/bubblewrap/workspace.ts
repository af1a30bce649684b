import { randomBytes } from 'node:crypto'
import { constants } from 'node:os'
import {
  type ByteStream,
  type CommandResult,
  createWaitingLine,
  type LongProgram,
  type Program,
  type ProgramProfile,
  type RunningProgram,
  type Shell,
  ToolError,
  TrainError,
  type Workspace,
} from '@aworld-train/core'
import { BoundedOutput } from '../bounded-output.ts'
import { quote } from '../quote.ts'
import { privateFolder } from './arguments.ts'
import { openBashShell } from './bash-shell.ts'
import { collectFiles, packAllScript, type RunScript, unpackAllScript, unpackFiles } from './collected-files.ts'
import { connectInto } from './connect-into.ts'
import { type Jail, type JailEnd, type JailParts, startFailure, startJail } from './jail.ts'
import { graphicalMemoryBytes, graphicalProcesses } from './limits.ts'
import { listenInRoom, type PortConnections, serveConnections } from './loopback-port.ts'
import { createMemoryWatch } from './memory-watch.ts'
import { descendantsOf, pauseTrees } from './processes.ts'
import type { Room } from './room.ts'
import { fileError, getScript, putScript, toJailPath } from './workspace-files.ts'

/** Most programs that run at once, without shells. Others wait. */
const programsAtOnce = 8
/** Processes that hold the jail of a shell, and its bash. They are added to the workspace's number. */
const processesOfShell = 4
/** Processes below that of a jail whose bash runs nothing: bubblewrap, the first one in the jail, and bash. */
const processesOfIdleJail = 3
const fileTimeoutMs = 60_000
/** A client's data arrives as fast as the client sends it. The server limits the time of a request to 300 s. */
const streamTimeoutMs = 330_000

const isStream = (input: string | Uint8Array | ByteStream): input is ByteStream => typeof input === 'object' && 'chunks' in input

/** Most bytes that wait for a program to read them. */
const bufferedBytes = 2 ** 20

/**
 * Writes to the standard input of a jail as fast as it is read, until either ends. Resolves to the error of the chunks, if there is one.
 */
async function feed({ stdin, ended }: Jail, chunks: AsyncIterable<Uint8Array>): Promise<unknown> {
  const iterator = chunks[Symbol.asyncIterator]()
  const over = ended.then(() => null)
  const closed = new Promise((resolve) => stdin.once('close', resolve))
  try {
    for (let next = await Promise.race([iterator.next(), over]); next && !next.done; next = await Promise.race([iterator.next(), over])) {
      stdin.write(next.value)
      if (stdin.writableLength > bufferedBytes) await Promise.race([new Promise((resolve) => stdin.once('drain', resolve)), closed, over])
    }
    return undefined
  } catch (error) {
    return error
  } finally {
    stdin.end()
    iterator.return?.()?.catch(() => {})
  }
}

/** Commands of bash that set variables for what follows. */
const exported = (env: Readonly<Record<string, string>>) =>
  Object.entries(env)
    .map(([name, value]) => `export ${name}=${quote(value)}; `)
    .join('')

export interface RoomWorkspace extends Workspace {
  /** Sets the variables of programs that start from now on. */
  setVariables(env: Readonly<Record<string, string>>): void
  /** Whether it was ended from outside. */
  hasDied(): boolean
}

/**
 * A workspace in a room that was opened for it, with the jail of its first program. Its memory is watched if no control group counts it.
 */
export function createWorkspace(room: Room, firstJail: Promise<Jail>, parts: JailParts, memoryIsCounted: boolean): RoomWorkspace {
  const { limits } = room
  const line = createWaitingLine<undefined, undefined>()
  const running = new Set<Jail>()
  const shells = new Set<Shell>()
  const ports = new Set<PortConnections>()
  const processes = () => [...running].flatMap((jail) => descendantsOf(jail.pid))
  const hasBackground = () => processes().length > running.size * processesOfIdleJail
  const watch = memoryIsCounted
    ? undefined
    : createMemoryWatch({
        processes,
        limitBytes: () => limits.memoryBytes + (isGraphical ? graphicalMemoryBytes : 0),
        hasBackground,
        network: room.pid,
      })
  const watched = <Value>(work: Promise<Value>) => watch?.during(work) ?? work
  let programs = 0
  /** Whether a graphical program was ever started. */
  let isGraphical = false
  let closing: Promise<void> | undefined
  let dead = false
  let fault: unknown
  let variables: Readonly<Record<string, string>> = {}
  const starting = new Set<Promise<Jail>>()
  /** Resolves when no work keeps the workspace still. */
  let quiet: Promise<void> = Promise.resolve()

  const hasDied = () => dead || room.hasDied()
  function check(): void {
    if (closing) throw new ToolError('The workspace is closed.')
    if (hasDied()) throw death()
  }
  const death = () => new TrainError('TOOL_SERVER_DIED', 'The jail of the workspace died; its files and shells are gone.', { cause: fault })

  function closePorts(): void {
    for (const port of ports) port.close()
    ports.clear()
  }

  /** Wraps a callback of a stream. Its error would otherwise be one of this whole process; so it ends only the workspace. */
  function contained<Input>(callback: (input: Input) => void): (input: Input) => void {
    return (input) => {
      try {
        callback(input)
      } catch (cause) {
        fault = cause
        void died()
      }
    }
  }

  async function begin(start = startJail({ ...room, room }, parts)): Promise<Jail> {
    starting.add(start)
    try {
      const jail = await start
      running.add(jail)
      jail.ended.then(() => running.delete(jail))
      if (closing || dead) void jail.kill()
      return jail
    } finally {
      starting.delete(start)
    }
  }

  /** Jail of the first program, which is started in advance. */
  let first: Promise<Jail | undefined> | undefined = begin(firstJail).catch(() => undefined)

  async function startNow(readOnly = false): Promise<Jail> {
    check()
    let jail: Jail | undefined
    if (!readOnly) {
      const early = first
      first = undefined
      jail = await early
    }
    try {
      if (!jail || jail.hasEnded()) jail = await begin(startJail({ ...room, room, readOnly }, parts))
    } catch (error) {
      check()
      throw error
    }
    const settings = exported(variables)
    if (settings !== '') jail.stdin.write(`${settings}\n`)
    return jail
  }

  /** Resolves when nothing keeps the workspace still. */
  async function stirs(): Promise<void> {
    for (let seen: unknown; seen !== quiet; ) {
      seen = quiet
      await quiet
    }
  }

  async function start(readOnly = false): Promise<Jail> {
    await stirs()
    return await startNow(readOnly)
  }

  /** Does work while all that runs in the workspace is stopped, so that no file changes. Works take turns. */
  function keepStill<Value>(work: () => Promise<Value>): Promise<Value> {
    const turn = quiet.then(async () => {
      await Promise.allSettled(starting)
      const unused = await first
      const jails = [...running].filter((jail) => jail !== unused)
      await Promise.all(jails.map((jail) => jail.stands))
      // What holds a jail is left alone: nsenter(1) stops itself when its child stops.
      const resume = pauseTrees(jails.flatMap((jail) => jail.firstProcess() ?? []))
      try {
        return await work()
      } finally {
        resume()
      }
    })
    quiet = turn.then(
      () => {},
      () => {},
    )
    return turn
  }

  /** Handles a jail that was ended from outside or ended with its room: nothing of the workspace goes on. */
  async function died(): Promise<Error> {
    if (closing) return new ToolError('The workspace is closed.')
    dead = true
    closePorts()
    for (const jail of running) void jail.kill()
    return death()
  }

  interface Run {
    readonly end: JailEnd
    readonly timedOut: boolean
    readonly errors: string
  }

  interface RunOptions {
    /** Called when the signal aborts. Default: the jail is killed. */
    readonly stop?: (jail: Jail) => unknown
    readonly begin?: () => Promise<Jail>
  }

  /** Runs a script of bash to its end, and hands its output on as it comes. */
  async function run(
    script: string,
    input: string | Uint8Array | ByteStream,
    timeoutMs: number,
    signal: AbortSignal,
    onOutput: (chunk: Buffer) => void,
    { stop = (jail) => jail.kill(), begin = start }: RunOptions = {},
  ): Promise<Run> {
    check()
    // Programs that are stopped give their places up to nobody.
    const takesPlace = begin !== startNow
    if (takesPlace && programs >= programsAtOnce) await line.wait(undefined, signal)
    else if (takesPlace) programs++
    try {
      signal.throwIfAborted()
      const jail = await begin()
      let timedOut = false
      const onAbort = () => stop(jail)
      const timer = setTimeout(() => {
        timedOut = true
        void jail.kill()
      }, timeoutMs)
      signal.addEventListener('abort', onAbort, { once: true })
      if (signal.aborted) onAbort()
      try {
        jail.output.on('data', contained(onOutput))
        // Bash reads its script one character at a time, and nothing beyond it.
        jail.stdin.write(`${script}\n`)
        let feeding: Promise<unknown> | undefined
        if (isStream(input)) feeding = feed(jail, input.chunks)
        else jail.stdin.end(input)
        const [end, cut] = await Promise.all([jail.ended, feeding, new Promise((resolve) => jail.output.once('close', resolve))])
        signal.throwIfAborted()
        if (cut !== undefined && !timedOut) throw cut
        if (end.signal && !timedOut) throw await died()
        check()
        if (!timedOut && !(await jail.stands)) throw startFailure(jail.errors())
        return { end, timedOut, errors: jail.errors() }
      } finally {
        clearTimeout(timer)
        signal.removeEventListener('abort', onAbort)
      }
    } finally {
      if (takesPlace && line.size() > 0) line.admit(undefined)
      else if (takesPlace) programs--
    }
  }

  /** Runs a script on a file, and keeps all of its output. */
  async function onFile(
    script: string,
    path: string,
    args: readonly string[],
    input: Uint8Array | ByteStream,
    signal: AbortSignal,
  ): Promise<Buffer> {
    const chunks: Buffer[] = []
    const words = [toJailPath(path), ...args].map(quote).join(' ')
    const timeoutMs = isStream(input) ? streamTimeoutMs : fileTimeoutMs
    const { end, timedOut, errors } = await run(
      `{ set -- ${words}; ${script}; exit; }`,
      input,
      timeoutMs,
      signal,
      (chunk) => chunks.push(chunk),
      // The script notices that its input was cut off, and removes what it has written.
      { stop: ({ stdin }) => stdin.destroy() },
    )
    if (timedOut) throw new ToolError(`Reading or writing ${JSON.stringify(path)} took longer than ${timeoutMs / 1000} s.`)
    if (end.exitCode !== 0) throw fileError(path, end.exitCode, errors)
    return Buffer.concat(chunks)
  }

  /** Runs scripts on many files, which programs of the workspace may not delay. */
  const onFiles =
    (signal: AbortSignal, begin: () => Promise<Jail>): RunScript =>
    async (script, input, onOutput) => {
      const { end, timedOut, errors } = await run(script, input, fileTimeoutMs, signal, onOutput, { begin })
      if (timedOut) throw new ToolError(`Reading or writing the files took longer than ${fileTimeoutMs / 1000} s.`)
      return { exitCode: end.exitCode, errors }
    }

  /** Takes the processes of what has ended from the group, unless the workspace closes and its group goes too. */
  function leave(processes: number): void {
    if (!closing) room.cgroup.allow({ processes: -processes })
  }

  /** Makes room for a program in the limits of the group, and returns what takes it away again. */
  function admit(profile: ProgramProfile): () => void {
    if (profile === 'command') {
      room.cgroup.allow({ processes: limits.processes })
      return () => leave(limits.processes)
    }
    // All graphical programs share what the first one brings. It stays, because the kernel lowers no limit below what is in use.
    if (!isGraphical) room.cgroup.allow({ processes: graphicalProcesses, memoryBytes: graphicalMemoryBytes })
    isGraphical = true
    return () => {}
  }

  async function startProgram({ command, profile, env = {} }: LongProgram, signal: AbortSignal): Promise<RunningProgram> {
    if ([...command, ...Object.values(env)].some((text) => text.includes('\0')))
      throw new ToolError('An argument or a variable cannot hold a NUL character.')
    await stirs()
    check()
    signal.throwIfAborted()
    const most = profile === 'graphical' ? graphicalProcesses : limits.processes
    const dismiss = admit(profile)
    const jail = await begin(startJail({ ...room, room }, parts, profile)).catch((error: unknown) => {
      dismiss()
      throw error
    })
    const ended = jail.ended.then(({ exitCode, signal }) => {
      dismiss()
      return signal ? 128 + constants.signals[signal] : exitCode
    })
    void watched(ended)
    const own: Readonly<Record<string, string>> = profile === 'graphical' ? { HOME: privateFolder, TMPDIR: privateFolder } : {}
    jail.stdin.write(`ulimit -u ${most}; ${exported({ ...variables, ...own, ...env })}exec ${command.map(quote).join(' ')}\n`)
    const close = async () => {
      await jail.kill()
      await ended
    }
    const onAbort = () => void close()
    signal.addEventListener('abort', onAbort, { once: true })
    void ended.then(() => signal.removeEventListener('abort', onAbort))
    if (signal.aborted) onAbort()
    if (!(await jail.stands)) throw startFailure(jail.errors())
    const connect = (name: string, signal: AbortSignal) => connectInto(jail.firstProcess(), name, signal)
    return { stdin: jail.stdin, stdout: jail.output, errors: jail.errors, ended, connect, close }
  }

  return {
    hasDied,
    setVariables(env) {
      variables = env
    },
    async run({ command, stdin, timeoutMs, readOnly = false }: Program, signal): Promise<CommandResult> {
      if (command.some((word) => word.includes('\0'))) throw new ToolError('An argument cannot hold a NUL character.')
      const output = new BoundedOutput(limits.outputBytes)
      const script = `ulimit -u ${limits.processes}; exec ${command.map(quote).join(' ')} 2>&1 ${stdin === undefined ? '</dev/null' : ''}`
      const { end, timedOut } = await watched(
        run(script, stdin ?? '', timeoutMs, signal, (chunk) => output.add(chunk), { begin: () => start(readOnly) }),
      )
      return { exitCode: timedOut ? 124 : end.exitCode, ...output.take(), timedOut }
    },
    async shell(signal) {
      check()
      room.cgroup.allow({ processes: processesOfShell })
      const opening = openBashShell({ start, died, contained, outputBytes: limits.outputBytes, processes: limits.processes }, signal)
      const shell = await opening.catch((error: unknown) => {
        leave(processesOfShell)
        throw error
      })
      shells.add(shell)
      return {
        execute: async (command, timeoutMs, signal) => {
          check()
          const result = await watched(shell.execute(command, timeoutMs, signal))
          if (dead) throw death()
          return result
        },
        async close() {
          await shell.close()
          if (shells.delete(shell)) leave(processesOfShell)
        },
      }
    },
    program: startProgram,
    async listen(port, onConnection, signal) {
      check()
      signal.throwIfAborted()
      const server = await listenInRoom(room, port, signal)
      const connections = serveConnections(server, contained(onConnection))
      ports.add(connections)
      const onAbort = () => {
        if (ports.delete(connections)) connections.close()
      }
      signal.addEventListener('abort', onAbort, { once: true })
      if (closing || dead || signal.aborted) onAbort()
      check()
    },
    async put(path, bytes, signal) {
      const size = isStream(bytes) ? bytes.size : bytes.length
      await onFile(putScript, path, [`.put-${randomBytes(8).toString('hex')}`, String(size)], bytes, signal)
    },
    async get(path, maxBytes, signal) {
      const bytes = await onFile(getScript, path, [String(maxBytes + 1)], Buffer.alloc(0), signal)
      if (bytes.length > maxBytes) throw new ToolError(`${JSON.stringify(path)} is larger than ${maxBytes} bytes.`)
      return bytes
    },
    putAll: (files, signal) => unpackFiles(files, onFiles(signal, start)),
    collect: (patterns, signal) => keepStill(() => collectFiles(patterns, onFiles(signal, startNow))),
    pack: (take, signal) =>
      keepStill(async () => {
        const jail = await startNow()
        const stop = () => void jail.kill()
        signal.addEventListener('abort', stop, { once: true })
        if (signal.aborted) stop()
        try {
          jail.stdin.end(`${packAllScript}\n`)
          await take(jail.output)
          const { exitCode } = await jail.ended
          signal.throwIfAborted()
          if (exitCode !== 0)
            throw new ToolError(`The files could not be copied: ${jail.errors().split('\n').at(-1) || `exit code ${exitCode}`}.`)
        } finally {
          signal.removeEventListener('abort', stop)
          stop()
        }
      }),
    async unpack(chunks, signal) {
      const { end, timedOut, errors } = await run(unpackAllScript, { size: 0, chunks }, streamTimeoutMs, signal, () => {})
      if (timedOut || end.exitCode !== 0)
        throw new ToolError(`The files could not be copied: ${errors.split('\n').at(-1) || 'it took too long'}.`)
    },
    close() {
      closing ??= (async () => {
        closePorts()
        await room.close()
        await first
        await Promise.allSettled([...running].map((jail) => jail.ended))
      })()
      return closing
    },
  }
}
