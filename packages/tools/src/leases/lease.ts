import { AsyncLocalStorage } from 'node:async_hooks'
import { availableParallelism } from 'node:os'
import { createSlots, type Slots, type TrainError, type Workspace } from '@aworld-train/core'
import { type Desktop, openDesktop } from '../desktop/open-desktop.ts'
import type { Egress } from '../egress/open-egress.ts'
import { createLeasedShells, type LeasedShells } from './leased-shells.ts'
import { createLeasedWorkspace, type LeasedWorkspaceOptions } from './leased-workspace.ts'

/** Most parsers that run at once for one lease, so that others find a place. */
const maxParsers = Math.max(1, Math.floor(availableParallelism() / 2))

/** Most requests to the world outside at once. Half of what one host gets from all leases together. */
const maxRequests = 4

/** Most errors of tools that are reported, so that no lease fills the log. */
const maxReports = 10

const working = new AsyncLocalStorage<Lease>()

/** The lease in whose work this runs, even in callbacks of streams and timers that the work began. */
export const leaseOfWork = (): Lease | undefined => working.getStore()

export interface LeaseOptions extends Omit<LeasedWorkspaceOptions, 'takeReady'> {
  readonly id: string
  readonly rollout: string
  readonly attempt: number
  /** `null` for a client that came without a lease. */
  readonly task: string | null
  /** Names of the tool servers that may be used; all if absent. */
  readonly servers?: readonly string[] | undefined
  /** Whether it has a screen. Default: no. */
  readonly hasDesktop?: boolean | undefined
  /** Takes a new workspace that stands ready for it, if there is one. Default: none does. */
  readonly takeReady?: ((lease: Lease) => Promise<Workspace | null>) | undefined
  readonly ttlMs: number
}

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
  readonly shells: Pick<LeasedShells, 'open' | 'all' | 'beginWith'>
  workspace(): Promise<Workspace>
  /** Its desktop, started at the first call; `null` if it has none. */
  desktop(): Promise<Desktop | null>
  /** The way of its programs to the web, opened at its first use. */
  egress(): Promise<Egress>
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
  const { id, rollout, attempt, task, servers, hasDesktop = false, limits, net, takeReady, ttlMs, onError } = options
  const ending = new AbortController()
  const { signal } = ending
  const files = createLeasedWorkspace({ ...options, takeReady: async () => (await takeReady?.(lease)) ?? null }, signal)
  const workspace = () => lease.work(files.open)
  const shells = createLeasedShells(workspace, signal, onError)
  let expiresAt = Date.now() + ttlMs
  let running = 0
  let reports = 0
  let desktop: Promise<Desktop> | null = null
  let gone: Promise<void> | null = null

  const lease: Lease = {
    ...{ id, rollout, attempt, task, servers, hasDesktop, net, limits, signal, shells, workspace },
    openedAt: Date.now(),
    get expiresAt() {
      return expiresAt
    },
    get running() {
      return running
    },
    get ended() {
      return signal.aborted ? signal.reason : null
    },
    parserPlaces: createSlots(maxParsers),
    requestPlaces: createSlots(maxRequests),
    async desktop() {
      if (!hasDesktop) return null
      desktop ??= workspace().then((files) => openDesktop(files, signal))
      return await desktop
    },
    egress: () => lease.work(files.egress),
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
        if (reason.cause instanceof Error) onError(reason.cause)
        ending.abort(reason)
        shells.forget()
        await files.close()
      })()
      return gone
    },
  }
  return lease
}
