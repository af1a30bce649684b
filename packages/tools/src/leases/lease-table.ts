import { randomUUID } from 'node:crypto'
import {
  type LeaseCopy,
  type LeaseOpen,
  type LeaseQuota,
  type Sandbox,
  stableStringify,
  TrainError,
  toTrainError,
  type WorkspaceLimits,
} from '@aworld-train/core'
import { desktopPackages } from '../desktop/open-desktop.ts'
import { needsPrograms } from '../sandbox/needs-programs.ts'
import { copyLease } from './copy-lease.ts'
import { createLease, type Lease, type LeaseOptions } from './lease.ts'
import type { OpenEgress } from './leased-workspace.ts'

export interface LeaseTableOptions {
  readonly sandbox: Sandbox
  /** Limits of a workspace if its lease asks for none. */
  readonly quota: Partial<WorkspaceLimits>
  /** Most that a lease may ask for. */
  readonly maxQuota: WorkspaceLimits
  /** Time after which an idle lease ends. */
  readonly ttlMs: number
  /** Most open leases at once. */
  readonly maxLeases: number
  /** Whether a lease may open the web to its commands. */
  readonly mayOpenNet: boolean
  readonly openEgress: OpenEgress
  readonly takeReady?: LeaseOptions['takeReady']
  /** Called with a lease that was opened for an attempt. */
  readonly onOpen: (lease: Lease) => void
  /** Called with a workspace that could not be removed. */
  readonly onError: (error: Error) => void
}

/** The leases of a server, and those that have ended recently. */
export interface LeaseTable {
  /** Opens the lease of an attempt. An older attempt of the rollout ends first. An attempt whose lease has ended never gets another. */
  open(request: LeaseOpen): Promise<Lease>
  /** Opens the lease of an attempt of another rollout as a copy of a lease, in the same way. */
  copy(source: Lease, request: LeaseCopy): Promise<Lease>
  /**
   * Returns the lease of a client that came without one, by the name of its session. A session without a name
   * begins anew when it has ended.
   */
  session(name: string): Lease
  find(id: string): Lease | undefined
  /** Ends leases that have been idle for too long. */
  sweep(): Promise<void>
  /** Open leases. */
  list(): readonly Lease[]
  close(): Promise<void>
}

type LeaseOrigin = Pick<LeaseOptions, 'rollout' | 'attempt' | 'task' | 'servers' | 'hasDesktop' | 'net'>

/** Number of ended leases that are remembered, so that none is opened again. */
const rememberedLeases = 10_000

export function createLeaseTable(options: LeaseTableOptions): LeaseTable {
  const { sandbox, quota, maxQuota, ttlMs, maxLeases, mayOpenNet, openEgress, takeReady, onOpen, onError } = options
  const byId = new Map<string, Lease>()
  const byKey = new Map<string, { readonly lease: Lease; readonly request: string; ready: Promise<unknown> | null }>()
  /** Keys of ended leases, oldest first. */
  const ended: (readonly [string, Lease])[] = []
  const open = new Set<Lease>()

  function forget(key: string, lease: Lease): void {
    byId.delete(lease.id)
    if (byKey.get(key)?.lease === lease) byKey.delete(key)
  }

  function add(key: string, request: string, origin: LeaseOrigin, limits: LeaseQuota): Lease {
    if (open.size >= maxLeases)
      throw new TrainError(
        'LEASE_LIMIT',
        `${open.size} leases are open already; close those whose rollouts have ended, or raise maxLeases.`,
      )
    const lease = createLease({
      ...origin,
      id: randomUUID(),
      limits: { ...quota, ...limits },
      openEgress,
      takeReady,
      sandbox,
      ttlMs,
      onError,
    })
    open.add(lease)
    byId.set(lease.id, lease)
    byKey.set(key, { lease, request, ready: null })
    lease.signal.addEventListener('abort', () => {
      open.delete(lease)
      if (ended.push([key, lease]) > rememberedLeases) forget(...ended.shift()!)
    })
    return lease
  }

  function checkQuota(limits: LeaseQuota): void {
    for (const [name, amount] of Object.entries(limits)) {
      const most = maxQuota[name as keyof LeaseQuota]
      if (amount > most)
        throw new TrainError(
          'LEASE_INVALID',
          `quota.${name} is ${amount}; this server grants at most ${most}. Ask for less, or raise its maxQuota.`,
        )
    }
  }

  interface Opening {
    readonly origin: LeaseOrigin
    /** The request in words. */
    readonly text: string
    readonly limits: LeaseQuota
    /** Makes a new workspace ready. */
    readonly fill: (lease: Lease) => Promise<unknown>
  }

  async function begin({ origin, limits, text, fill }: Opening, older: Lease | undefined): Promise<Lease> {
    const { rollout, attempt } = origin
    const key = rolloutKey(rollout)
    const ending = older?.end(lost(`Attempt ${attempt} of rollout "${rollout}" has begun; attempt ${older.attempt} is over.`))
    const lease = add(key, text, origin, limits)
    const makeReady = async () => {
      await ending
      await lease.workspace()
      await fill(lease)
    }
    const ready = makeReady()
    byKey.get(key)!.ready = ready
    try {
      await ready
      lease.work(() => onOpen(lease))
      return lease
    } catch (cause) {
      // The workspace was still empty, so the same attempt may open it again.
      forget(key, lease)
      await lease.end(toTrainError(cause, 'ENVIRONMENT_START_FAILED'))
      throw cause
    }
  }

  async function openOnce(opening: Opening): Promise<Lease> {
    const { rollout, attempt } = opening.origin
    const current = byKey.get(rolloutKey(rollout))
    if (!current || current.lease.attempt < attempt) return await begin(opening, current?.lease)
    const { lease } = current
    if (lease.attempt > attempt) {
      const message = `Rollout "${rollout}" is at attempt ${lease.attempt}, and attempt ${attempt} is over; count attempts up.`
      throw new TrainError('LEASE_CONFLICT', message)
    }
    if (current.request !== opening.text) {
      const message = `Attempt ${attempt} of rollout "${rollout}" has a lease that was asked for in other words; ask in the same, or count attempts up.`
      throw new TrainError('LEASE_CONFLICT', message)
    }
    if (lease.ended) throw lease.ended
    lease.use()()
    await current.ready
    return lease
  }

  return {
    async open(request) {
      const { rollout, attempt, task, servers, quota: limits = {}, desktop: hasDesktop = false, net = false } = request
      checkQuota(limits)
      if (hasDesktop && sandbox.tier !== 'bubblewrap')
        throw new TrainError('LEASE_INVALID', `${needsPrograms('A desktop', desktopPackages)} Without that, leave "desktop" out.`)
      if (net && !mayOpenNet)
        throw new TrainError(
          'LEASE_INVALID',
          'This server opens the web to no commands of a lease; remove "net", or ask its operator for it.',
        )
      const origin = { rollout, attempt, task, servers, hasDesktop, net }
      return await openOnce({ origin, limits, text: stableStringify(request), fill: (lease) => lease.desktop() })
    },
    async copy(source, { rollout, attempt }) {
      if (rollout === source.rollout)
        throw new TrainError('LEASE_INVALID', `The workspace is that of rollout "${rollout}" already; copy it for another rollout.`)
      const { id, task, servers, hasDesktop, net, limits } = source
      const fill = async (lease: Lease) => {
        await source.work(() => copyLease(source, lease, sandbox.tier))
        await lease.desktop()
      }
      const origin = { rollout, attempt, task, servers, hasDesktop, net }
      return await openOnce({ origin, limits, text: stableStringify({ copyOf: id, rollout, attempt }), fill })
    },
    session(name) {
      const key = `session ${name}`
      const current = byKey.get(key)?.lease
      if (current && !(name === '' && current.ended)) return current
      return add(key, '', { rollout: name, attempt: 0, task: null, servers: undefined, net: false }, {})
    },
    find: (id) => byId.get(id),
    async sweep() {
      const now = Date.now()
      const idle = [...open].filter(({ running, expiresAt }) => running === 0 && expiresAt <= now)
      const message = `Nobody called for ${ttlMs / 1_000} s, so the workspace was removed; begin another attempt.`
      await Promise.all(idle.map((lease) => lease.end(lost(message))))
    },
    list: () => [...open],
    async close() {
      // Leases that are already ending are also waited for.
      await Promise.all([...byId.values()].map((lease) => lease.end(lost('The environment server was stopped.'))))
    },
  }
}

const rolloutKey = (rollout: string) => `rollout ${rollout}`

/** The error of calls to a lease whose workspace is gone. */
function lost(message: string): TrainError {
  return new TrainError('TOOL_SERVER_DIED', message)
}
