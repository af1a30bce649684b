import { createSlots } from '@aworld-train/core'
import { type Jail, type JailEnd, startFailure } from './jail.ts'
import type { Jails } from './jails.ts'
import type { Pause } from './pause.ts'
import type { WorkspaceState } from './workspace-state.ts'

/** Most programs that run at once, without shells. Others wait. */
const programsAtOnce = 8

export interface ScriptOptions {
  readonly signal: AbortSignal
  readonly timeoutMs: number
  /** Its standard input, or what writes and ends that, and resolves to an error that cut it off. Default: empty. */
  readonly input?: string | Uint8Array | ((jail: Jail) => Promise<unknown>)
  readonly onOutput?: (chunk: Buffer) => void
  /** Called when the signal aborts. Default: the jail is killed. */
  readonly stop?: (jail: Jail) => unknown
  readonly readOnly?: boolean
  /** Whether it runs while all else is paused. */
  readonly inPause?: boolean
}

export interface ScriptEnd {
  readonly end: JailEnd
  readonly timedOut: boolean
  readonly errors: string
}

/** Runs a script of bash to its end, and hands its output on as it comes. */
export type ScriptRunner = (script: string, options: ScriptOptions) => Promise<ScriptEnd>

export function createScriptRunner(jails: Jails, pause: Pause, state: WorkspaceState): ScriptRunner {
  const places = createSlots(programsAtOnce)
  return async (script, options) => {
    const { signal, timeoutMs, input = '', onOutput = () => {}, stop = (jail) => jail.kill(), readOnly = false, inPause = false } = options
    state.check()
    // Programs that are stopped give their places up to nobody.
    if (!inPause) await places.take(signal)
    try {
      signal.throwIfAborted()
      if (!inPause) await pause.over()
      const jail = await jails.open({ readOnly })
      let timedOut = false
      const onAbort = () => stop(jail)
      const timer = setTimeout(() => {
        timedOut = true
        void jail.kill()
      }, timeoutMs)
      signal.addEventListener('abort', onAbort, { once: true })
      if (signal.aborted) onAbort()
      try {
        jail.output.on('data', state.contained(onOutput))
        // Bash reads its script one character at a time, and nothing beyond it.
        jail.stdin.write(`${script}\n`)
        let feeding: Promise<unknown> | undefined
        if (typeof input === 'function') feeding = input(jail)
        else jail.stdin.end(input)
        const [end, cut] = await Promise.all([jail.ended, feeding, new Promise((resolve) => jail.output.once('close', resolve))])
        signal.throwIfAborted()
        if (cut !== undefined && !timedOut) throw cut
        if (end.signal && !timedOut) throw state.die()
        state.check()
        if (!timedOut && !(await jail.stands)) throw startFailure(jail.errors())
        return { end, timedOut, errors: jail.errors() }
      } finally {
        clearTimeout(timer)
        signal.removeEventListener('abort', onAbort)
      }
    } finally {
      if (!inPause) places.give()
    }
  }
}
