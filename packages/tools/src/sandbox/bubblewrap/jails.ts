import type { ProgramProfile } from '@aworld-train/core'
import { words } from '../quote.ts'
import { type Jail, type JailParts, startJail } from './jail.ts'
import { descendantsOf } from './processes.ts'
import type { Room } from './room.ts'
import type { WorkspaceState } from './workspace-state.ts'

/** Processes below that of a jail whose bash runs nothing: bubblewrap, the first one in the jail, and bash. */
const processesOfIdleJail = 3

export type Variables = Readonly<Record<string, string>>

export interface JailRequest {
  readonly readOnly?: boolean | undefined
  readonly profile?: ProgramProfile
  /** Variables beside those of every program. */
  readonly env?: Variables
}

/** The jails that run in a room. */
export interface Jails {
  /** Starts a jail, or takes the one that was started in advance. Rejects if the workspace is closed or dead. */
  open(request?: JailRequest): Promise<Jail>
  /** Sets the variables of every program that starts from now on. */
  setVariables(env: Variables): void
  /** All of their processes. */
  processes(): readonly number[]
  /** Whether processes run that no work waits for. */
  hasBackground(): boolean
  /** Resolves to the first process in each jail that was opened. */
  firstProcesses(): Promise<readonly number[]>
  /** Resolves when all have ended. */
  ended(): Promise<void>
}

export function createJails(room: Room, firstJail: Promise<Jail>, parts: JailParts, state: WorkspaceState): Jails {
  const running = new Set<Jail>()
  const starting = new Set<Promise<Jail>>()
  const processes = () => [...running].flatMap((jail) => descendantsOf(jail.pid))
  let variables: Variables = {}

  async function track(start: Promise<Jail>): Promise<Jail> {
    starting.add(start)
    try {
      const jail = await start
      running.add(jail)
      jail.ended.then(() => running.delete(jail))
      if (state.signal.aborted) void jail.kill()
      return jail
    } finally {
      starting.delete(start)
    }
  }
  state.signal.addEventListener('abort', () => {
    for (const jail of running) void jail.kill()
  })
  /** Jail of the first program, which is started in advance. */
  let first: Promise<Jail | undefined> | undefined = track(firstJail).catch(() => undefined)

  return {
    async open({ readOnly = false, profile = 'command', env = {} } = {}) {
      state.check()
      const settings = words(Object.entries({ ...variables, ...env }).map(([name, value]) => `${name}=${value}`))
      let jail: Jail | undefined
      if (!readOnly && profile === 'command') {
        const early = first
        first = undefined
        jail = await early
      }
      try {
        if (!jail || jail.hasEnded()) jail = await track(startJail({ ...room, room, readOnly }, parts, profile))
      } catch (error) {
        state.check()
        throw error
      }
      if (settings !== '') jail.stdin.write(`export ${settings}\n`)
      return jail
    },
    setVariables(env) {
      variables = env
    },
    processes,
    hasBackground: () => processes().length > running.size * processesOfIdleJail,
    async firstProcesses() {
      await Promise.allSettled(starting)
      const unused = await first
      const jails = [...running].filter((jail) => jail !== unused)
      await Promise.all(jails.map((jail) => jail.stands))
      // What holds a jail is left alone: nsenter(1) stops itself when its child stops.
      return jails.flatMap((jail) => jail.firstProcess() ?? [])
    },
    async ended() {
      await first
      await Promise.allSettled([...running].map((jail) => jail.ended))
    },
  }
}
