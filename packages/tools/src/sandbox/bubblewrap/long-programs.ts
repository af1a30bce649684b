import { constants } from 'node:os'
import type { LongProgram, RunningProgram } from '@aworld-train/core'
import { words } from '../quote.ts'
import { privateFolder } from './arguments.ts'
import { connectInto } from './connect-into.ts'
import { startFailure } from './jail.ts'
import type { Jails } from './jails.ts'
import { graphicalMemoryBytes, graphicalProcesses } from './limits.ts'
import type { Room } from './room.ts'

/** The programs of a workspace that run beside its commands. */
export interface LongPrograms {
  start(program: LongProgram, signal: AbortSignal): Promise<RunningProgram>
  /** Memory that they may take beside that of the workspace, in bytes. */
  memoryBytes(): number
}

/** `onStart` is called with the end of each program. */
export function createLongPrograms(
  { cgroup, limits }: Pick<Room, 'cgroup' | 'limits'>,
  jails: Pick<Jails, 'open'>,
  onStart: (ended: Promise<unknown>) => void,
): LongPrograms {
  /** Whether a graphical program was ever started. */
  let isGraphical = false

  /** Makes room for a program in the limits of the group, and returns what takes it away again. */
  function admit({ profile }: LongProgram): () => void {
    if (profile === 'command') {
      cgroup.allow({ processes: limits.processes })
      return () => cgroup.allow({ processes: -limits.processes })
    }
    // All graphical programs share what the first one brings. It stays, because the kernel lowers no limit below what is in use.
    if (!isGraphical) cgroup.allow({ processes: graphicalProcesses, memoryBytes: graphicalMemoryBytes })
    isGraphical = true
    return () => {}
  }

  return {
    memoryBytes: () => (isGraphical ? graphicalMemoryBytes : 0),
    async start(program, signal) {
      signal.throwIfAborted()
      const { command, profile, env } = program
      const script = `exec ${words(command)}`
      const dismiss = admit(program)
      const [most, own] =
        profile === 'graphical' ? [graphicalProcesses, { HOME: privateFolder, TMPDIR: privateFolder }] : [limits.processes, {}]
      const jail = await jails.open({ profile, env: { ...own, ...env } }).catch((error: unknown) => {
        dismiss()
        throw error
      })
      const ended = jail.ended.then(({ exitCode, signal }) => {
        dismiss()
        return signal ? 128 + constants.signals[signal] : exitCode
      })
      onStart(ended)
      jail.stdin.write(`ulimit -u ${most}; ${script}\n`)
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
    },
  }
}
