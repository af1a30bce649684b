import type { FleetLimits } from './fleet-limits.ts'

/** The values by which a replica is chosen. */
export interface ReplicaLoad {
  readonly usable: boolean
  readonly inFlight: number
  readonly waiting: number
  /** Rollouts that are pinned to the replica, which decides between replicas of equal load. */
  readonly sessions: number
}

export type Choice =
  | { readonly kind: 'take'; readonly index: number; readonly moved: boolean }
  /** The call waits for a place at replica `index`. */
  | { readonly kind: 'wait'; readonly index: number }
  /** The call waits for a place at any replica. */
  | { readonly kind: 'wait-anywhere' }

const load = ({ inFlight, waiting }: ReplicaLoad): number => inFlight + waiting

function leastLoaded(replicas: readonly ReplicaLoad[], fits: (replica: ReplicaLoad) => boolean): number {
  let best = -1
  for (const [index, replica] of replicas.entries()) {
    if (!fits(replica)) continue
    const other = replicas[best]
    if (!other || load(replica) < load(other) || (load(replica) === load(other) && replica.sessions < other.sessions)) best = index
  }
  return best
}

/**
 * Chooses the replica for a call: the one that its rollout is pinned to, while that is healthy; otherwise, and at first use, the one with
 * the fewest calls. A rollout leaves a full replica only past both thresholds, because it loses its cache.
 */
export function chooseReplica(
  replicas: readonly ReplicaLoad[],
  pinned: number | undefined,
  { maxInFlight, repinExcess, repinRatio }: Pick<FleetLimits, 'maxInFlight' | 'repinExcess' | 'repinRatio'>,
): Choice {
  const hasRoom = (replica: ReplicaLoad) => replica.usable && replica.inFlight < maxInFlight && replica.waiting === 0
  const least = leastLoaded(replicas, hasRoom)
  const home = pinned === undefined ? undefined : replicas[pinned]
  if (pinned === undefined || !home?.usable)
    return least < 0 ? { kind: 'wait-anywhere' } : { kind: 'take', index: least, moved: pinned !== undefined }
  if (hasRoom(home)) return { kind: 'take', index: pinned, moved: false }
  const other = replicas[least]
  if (other && load(home) > load(other) + repinExcess && load(home) > load(other) * repinRatio)
    return { kind: 'take', index: least, moved: true }
  return { kind: 'wait', index: pinned }
}
