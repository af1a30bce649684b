import { type Admin, createAdmin } from '../http/admin.ts'
import { type Connections, createConnections } from '../http/connections.ts'
import type { FleetLimits } from './fleet-limits.ts'
import { type Health, healthyAtStart } from './replica-health.ts'

/** Reason why a replica takes no new calls. */
export type OutOfService = 'unhealthy' | 'draining' | 'stale'

/** One server of a fleet. Only the path of the calls changes its numbers of calls. */
export interface Replica {
  readonly index: number
  readonly url: string
  /** Path in front of every route; empty for most. */
  readonly base: string
  readonly connections: Connections
  readonly admin: Admin
  inFlight: number
  health: Health
  draining: boolean
  /** Whether the server samples, or may sample, from other weights than the published ones. */
  stale: boolean
  boot: string | null
  /** How often it restarted while other weights than its initial ones were published. */
  restarts: number
  /** The server's own name for version `versions(undefined).at(-1)`; `null` if it names none. */
  label: string | null
  /** Its name for its initial weights. */
  firstLabel: string | null
  /** Versions that sampled, in order, by policy; the base weights are ''. */
  readonly history: Map<string, number[]>
}

export interface ReplicaOptions {
  readonly index: number
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly limits: FleetLimits
  readonly weightVersion: number
  /** Called when it closed a connection without announcing that. */
  readonly onServerClosed: (replica: Replica) => void
}

export function createReplica({ index, url, headers, limits, weightVersion, onServerClosed }: ReplicaOptions): Replica {
  const { connectTimeoutMs, keepAliveMs, maxInFlight: maxConnections } = limits
  const replica: Replica = {
    index,
    url,
    base: new URL(url).pathname.replace(/\/+$/, ''),
    connections: createConnections({ url, connectTimeoutMs, keepAliveMs, maxConnections, onServerClosed: () => onServerClosed(replica) }),
    admin: createAdmin({ url, headers, connectTimeoutMs, keepAliveMs }),
    inFlight: 0,
    health: healthyAtStart,
    draining: false,
    stale: false,
    boot: null,
    restarts: 0,
    label: null,
    firstLabel: null,
    history: new Map([['', [weightVersion]]]),
  }
  return replica
}

export const isUsable = ({ health, draining, stale }: Replica): boolean => health.healthy && !draining && !stale

export const outOfService = ({ health, draining, stale }: Replica): OutOfService | null =>
  stale ? 'stale' : !health.healthy ? 'unhealthy' : draining ? 'draining' : null

/** Versions of a policy on a replica, oldest first. An adapter that was never published counts from the base weights' version. */
export function versionsOf({ history }: Pick<Replica, 'history'>, policy = ''): number[] {
  return history.get(policy) ?? (history.get('') as number[])
}

export function currentVersion(replica: Pick<Replica, 'history'>, policy?: string): number {
  return versionsOf(replica, policy).at(-1) as number
}

export function setVersion({ history }: Pick<Replica, 'history'>, version: number, policy = ''): void {
  const versions = history.get(policy)
  if (versions?.at(-1) === version) return
  if (versions) versions.push(version)
  else history.set(policy, [version])
}
