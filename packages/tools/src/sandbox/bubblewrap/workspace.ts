import { randomBytes } from 'node:crypto'
import { type ByteStream, ToolError, type Workspace } from '@aworld-train/core'
import { BoundedOutput } from '../bounded-output.ts'
import { words } from '../quote.ts'
import { openBashShell } from './bash-shell.ts'
import { collectFiles, type RunScript, unpackFiles } from './collected-files.ts'
import { packRoom, unpackRoom } from './copied-files.ts'
import { feed } from './feed.ts'
import type { Jail, JailParts } from './jail.ts'
import { createJails, type Variables } from './jails.ts'
import { createLongPrograms } from './long-programs.ts'
import { listenInRoom, serveConnections } from './loopback-port.ts'
import { createMemoryWatch } from './memory-watch.ts'
import { createPause } from './pause.ts'
import type { Room } from './room.ts'
import { createScriptRunner } from './script-runner.ts'
import { fileError, getScript, putScript, toJailPath } from './workspace-files.ts'
import { createWorkspaceState } from './workspace-state.ts'

/** Processes that hold the jail of a shell, and its bash. They are added to the workspace's number. */
const processesOfShell = 4
const fileTimeoutMs = 60_000
/** A client's data arrives as fast as the client sends it. The server limits the time of a request to 300 s. */
const streamTimeoutMs = 330_000

const isStream = (input: Uint8Array | ByteStream): input is ByteStream => 'chunks' in input

export interface RoomWorkspace extends Workspace {
  /** Sets the variables of programs that start from now on. */
  setVariables(env: Variables): void
  /** Whether it was ended from outside. */
  hasDied(): boolean
}

/**
 * A workspace in a room that was opened for it, with the jail of its first program. Its memory is watched if no control group counts it.
 */
export function createWorkspace(room: Room, firstJail: Promise<Jail>, parts: JailParts, memoryIsCounted: boolean): RoomWorkspace {
  const { limits, cgroup } = room
  const state = createWorkspaceState(room)
  function untilEnd(signal: AbortSignal): AbortSignal {
    state.check()
    return AbortSignal.any([state.signal, signal])
  }
  const jails = createJails(room, firstJail, parts, state)
  const pause = createPause(jails.firstProcesses)
  const runScript = createScriptRunner(jails, pause, state)
  const longPrograms = createLongPrograms(room, jails, (ended) => void watched(ended))
  const watch = memoryIsCounted
    ? undefined
    : createMemoryWatch({
        processes: jails.processes,
        limitBytes: () => limits.memoryBytes + longPrograms.memoryBytes(),
        hasBackground: jails.hasBackground,
        network: room.pid,
      })
  const watched = <Value>(work: Promise<Value>) => watch?.during(work) ?? work
  let closing: Promise<void> | undefined

  /** Runs a script on a file, and keeps all of its output. */
  async function onFile(
    script: string,
    path: string,
    args: readonly string[],
    signal: AbortSignal,
    bytes: Uint8Array | ByteStream = Buffer.alloc(0),
  ) {
    const chunks: Buffer[] = []
    const timeoutMs = isStream(bytes) ? streamTimeoutMs : fileTimeoutMs
    const { end, timedOut, errors } = await runScript(`{ set -- ${words([toJailPath(path), ...args])}; ${script}; exit; }`, {
      signal,
      timeoutMs,
      input: isStream(bytes) ? (jail) => feed(jail, bytes.chunks) : bytes,
      onOutput: (chunk) => chunks.push(chunk),
      // The script notices that its input was cut off, and removes what it has written.
      stop: ({ stdin }) => stdin.destroy(),
    })
    if (timedOut) throw new ToolError(`Reading or writing ${JSON.stringify(path)} took longer than ${timeoutMs / 1000} s.`)
    if (end.exitCode !== 0) throw fileError(path, end.exitCode, errors)
    return Buffer.concat(chunks)
  }

  /** Runs scripts on many files, which programs of the workspace may not delay. */
  const onFiles =
    (signal: AbortSignal, inPause = false): RunScript =>
    async (script, input, onOutput) => {
      const { end, timedOut, errors } = await runScript(script, { input, timeoutMs: fileTimeoutMs, signal, onOutput, inPause })
      if (timedOut) throw new ToolError(`Reading or writing the files took longer than ${fileTimeoutMs / 1000} s.`)
      return { exitCode: end.exitCode, errors }
    }

  return {
    hasDied: state.hasDied,
    setVariables: jails.setVariables,
    async run({ command, stdin, timeoutMs, readOnly = false }, signal) {
      const output = new BoundedOutput(limits.outputBytes)
      const script = `ulimit -u ${limits.processes}; exec ${words(command)} 2>&1 ${stdin === undefined ? '</dev/null' : ''}`
      const { end, timedOut } = await watched(
        runScript(script, { input: stdin ?? '', timeoutMs, signal, onOutput: (chunk) => output.add(chunk), readOnly }),
      )
      return { exitCode: timedOut ? 124 : end.exitCode, ...output.take(), timedOut }
    },
    async shell(signal) {
      state.check()
      cgroup.allow({ processes: processesOfShell })
      const dismiss = () => cgroup.allow({ processes: -processesOfShell })
      const start = async () => {
        await pause.over()
        return await jails.open()
      }
      const shell = await openBashShell({ start, state, outputBytes: limits.outputBytes, processes: limits.processes }, signal).catch(
        (error: unknown) => {
          dismiss()
          throw error
        },
      )
      let isOpen = true
      return {
        async execute(command, timeoutMs, signal) {
          state.check()
          const result = await watched(shell.execute(command, timeoutMs, signal))
          if (state.hasDied()) throw state.die()
          return result
        },
        async close() {
          await shell.close()
          if (isOpen) dismiss()
          isOpen = false
        },
      }
    },
    async program(program, signal) {
      await pause.over()
      return await longPrograms.start(program, signal)
    },
    async listen(port, onConnection, signal) {
      const until = untilEnd(signal)
      until.throwIfAborted()
      serveConnections(await listenInRoom(room, port, until), state.contained(onConnection), until)
      state.check()
    },
    async put(path, bytes, signal) {
      const size = isStream(bytes) ? bytes.size : bytes.length
      await onFile(putScript, path, [`.put-${randomBytes(8).toString('hex')}`, String(size)], signal, bytes)
    },
    async get(path, maxBytes, signal) {
      const bytes = await onFile(getScript, path, [String(maxBytes + 1)], signal)
      if (bytes.length > maxBytes) throw new ToolError(`${JSON.stringify(path)} is larger than ${maxBytes} bytes.`)
      return bytes
    },
    putAll: (files, signal) => unpackFiles(files, onFiles(signal)),
    collect: (patterns, signal) => pause.during(() => collectFiles(patterns, onFiles(signal, true))),
    pack: (output, signal) => pause.during(async () => packRoom(room, output, untilEnd(signal))),
    async unpack(fill, signal) {
      await unpackRoom(room, fill, untilEnd(signal))
    },
    close() {
      closing ??= (async () => {
        state.close()
        await room.close()
        await jails.ended()
      })()
      return closing
    },
  }
}
