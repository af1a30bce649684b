import { AsyncLocalStorage } from 'node:async_hooks'
import { availableParallelism } from 'node:os'
import {
  createSlots,
  type Sandbox,
  type Shell,
  type Slots,
  ToolError,
  type TrainError,
  toTrainError,
  type Workspace,
  type WorkspaceLimits,
} from '@aworld-train/core'
import { type Desktop, openDesktop } from '../desktop/open-desktop.ts'
import { type Egress, egressVariables } from '../egress/open-egress.ts'

/** Most shells of one lease. Each is a process, or a part of one. */
const maxShells = 64

/** Most parsers that run at once for one lease, so that others find a place. */
const maxParsers = Math.max(1, Math.floor(availableParallelism() / 2))

/** Most requests to the world outside at once. Half of what one host gets from all leases together. */
const maxRequests = 4

/** Most errors of tools that are reported, so that no lease fills the log. */
const maxReports = 10

/** Longest time of the script that a shell begins with. */
const beginMs = 10_000

const working = new AsyncLocalStorage<Lease>()

/** The lease in whose work this runs, even in callbacks of streams and timers that the work began. */
export const leaseOfWork = (): Lease | undefined => working.getStore()

export interface LeaseOptions {
  readonly id: string
  readonly rollout: string
  readonly attempt: number
  /** `null` for a client that came without a lease. */
  readonly task: string | null
  /** Names of the tool servers that may be used; all if absent. */
  readonly servers?: readonly string[] | undefined
  /** Whether it has a screen. Default: no. */
  readonly hasDesktop?: boolean | undefined
  readonly limits: Partial<WorkspaceLimits>
  /** Whether its commands reach the public web. */
  readonly net: boolean
  /** Leads programs of its workspace to the web: all of them, or those that know the credentials. */
  readonly openEgress: OpenEgress
  readonly sandbox: Sandbox
  readonly ttlMs: number
  /** Called with errors of tools, with the failure of the workspace, and with an error of its removal. */
  readonly onError: (error: Error) => void
}

/** Opens the way of a workspace to the web, until the signal aborts. */
export type OpenEgress = (workspace: Workspace, isOpen: boolean, signal: AbortSignal) => Promise<Egress>

/** Files and shells of one attempt. Each is made at its first use, and none after the lease has ended. */
export interface Lease extends Pick<LeaseOptions, 'id' | 'rollout' | 'attempt' | 'task' | 'servers' | 'net' | 'limits'> {
  readonly hasDesktop: boolean
  readonly openedAt: number
  readonly expiresAt: number
  /** Number of running calls. */
  readonly running: number
  /** The reason why it has ended, which also aborts its signal. */
  readonly ended: TrainError | null
  readonly signal: AbortSignal
  /** Its places among the parsers of the server. */
  readonly parserPlaces: Slots
  /** Its places among the requests of the server to the world outside. */
  readonly requestPlaces: Slots
  workspace(): Promise<Workspace>
  /** Its desktop, started at the first call; `null` if it has none. */
  desktop(): Promise<Desktop | null>
  /** The way of its programs to the web, opened at its first use. */
  egress(): Promise<Egress>
  /** The shell of one agent's run. */
  shell(session: string): Promise<Shell>
  /** Its open shells by session. */
  shells(): Promise<ReadonlyMap<string, Shell>>
  /** Has each shell begin with a script, if `scriptOf` has one for its session. */
  beginShells(scriptOf: (session: string) => string | null): void
  /** Begins a call and returns the function that ends it. The time of the lease begins again at both moments. */
  use(): () => void
  /** Reports an error that no tool should throw. */
  report(error: Error): void
  /** Runs work of the lease. Everything that the work begins belongs to the lease. */
  work<Value>(work: () => Value): Value
  /** Ends calls and processes, and removes files. Resolves when they are gone. The first reason is kept. */
  end(reason: TrainError): Promise<void>
}

export function createLease(options: LeaseOptions): Lease {
  const { id, rollout, attempt, task, servers, hasDesktop = false, limits, net, openEgress, sandbox, ttlMs, onError } = options
  const openedAt = Date.now()
  let expiresAt = openedAt + ttlMs
  let running = 0
  let reports = 0
  let ended: TrainError | null = null
  let gone: Promise<void> | null = null
  const ending = new AbortController()
  let opened: Promise<Workspace> | null = null
  let desktop: Promise<Desktop> | null = null
  let egress: Promise<Egress> | null = null
  const shells = new Map<string, Promise<Shell>>()
  let scriptOf: (session: string) => string | null = () => null

  async function openShell(session: string): Promise<Shell> {
    const shell = await (await workspace()).shell(ending.signal)
    const script = scriptOf(session)
    if (script === null) return shell
    try {
      await shell.execute(script, beginMs, ending.signal)
      return shell
    } catch (error) {
      await shell.close().catch(onError)
      throw error
    }
  }

  function workspace(): Promise<Workspace> {
    if (ended) return Promise.reject(ended)
    if (!opened) {
      opened = lease.work(openWorkspace).catch((cause: unknown) => {
        // The next call tries again to open the workspace.
        opened = null
        throw toTrainError(cause, 'ENVIRONMENT_START_FAILED')
      })
    }
    return opened
  }

  async function openWorkspace(): Promise<Workspace> {
    const files = await sandbox.workspace(net ? { limits, env: egressVariables } : { limits }, ending.signal)
    if (!net) return files
    try {
      await startEgress(files)
      return files
    } catch (error) {
      await files.close().catch(onError)
      throw error
    }
  }

  function startEgress(files: Workspace): Promise<Egress> {
    const starting = openEgress(files, net, ending.signal)
    egress = starting
    starting.catch(() => {
      // The next call tries again.
      egress = null
    })
    return starting
  }

  const lease: Lease = {
    id,
    rollout,
    attempt,
    task,
    servers,
    hasDesktop,
    net,
    limits,
    openedAt,
    get expiresAt() {
      return expiresAt
    },
    get running() {
      return running
    },
    get ended() {
      return ended
    },
    signal: ending.signal,
    parserPlaces: createSlots(maxParsers),
    requestPlaces: createSlots(maxRequests),
    workspace,
    async desktop() {
      if (!hasDesktop) return null
      desktop ??= workspace().then((files) => openDesktop(files, ending.signal))
      return await desktop
    },
    async egress() {
      const files = await workspace()
      return await (egress ?? lease.work(() => startEgress(files)))
    },
    shell(session) {
      if (!shells.has(session) && shells.size >= maxShells)
        return Promise.reject(new ToolError(`${maxShells} shells are open in this workspace already; go on in one of them.`))
      const open = shells.get(session) ?? openShell(session)
      shells.set(session, open)
      open.catch(() => shells.delete(session))
      return open
    },
    async shells() {
      return new Map(await Promise.all(Array.from(shells, async ([session, shell]) => [session, await shell] as const)))
    },
    beginShells(next) {
      scriptOf = next
    },
    use() {
      running++
      expiresAt = Date.now() + ttlMs
      return () => {
        running--
        expiresAt = Date.now() + ttlMs
      }
    },
    report(error) {
      if (reports++ < maxReports) onError(error)
    },
    work: (work) => working.run(lease, work),
    end(reason) {
      gone ??= (async () => {
        ended = reason
        if (reason.cause instanceof Error) onError(reason.cause)
        ending.abort(reason)
        const files = await opened?.catch(() => null)
        opened = null
        shells.clear()
        await files?.close().catch(onError)
      })()
      return gone
    },
  }
  return lease
}
