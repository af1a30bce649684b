import { TrainError } from '@aworld-train/core'
import { chooseReplica } from './choose-replica.ts'
import type { FleetLimits } from './fleet-limits.ts'
import { isUsable, type Replica } from './replica.ts'
import { createSessionTable, type SessionTable } from './session-table.ts'

interface Waiter {
  readonly affinity: string
  readonly since: number
  admit(replica: Replica): void
  reject(error: unknown): void
}

/** Gives calls a place at a replica, in order of arrival, and takes it back. */
export interface Admission {
  /** Resolves to a replica that then has one more call in flight. Each call is matched by one `leave`. Rejects with the signal's reason. */
  enter(affinity: string, signal: AbortSignal): Promise<Replica>
  leave(replica: Replica): void
  /** Makes new calls wait until `release` has been called as often as `hold`. */
  hold(): void
  release(): void
  /** Admits waiting calls. Called when a replica came, went or has room. */
  pump(): void
  /** Rejects calls that have waited since before `since` while no replica is healthy. */
  expire(since: number): void
  rejectAll(error: unknown): void
  readonly sessions: SessionTable
  isHeld(): boolean
  waiting(): number
  /** Unix milliseconds since when the oldest call waits; `null` if none does. */
  waitingSince(): number | null
  /** Number of rollouts that left their replica. */
  moves(): number
}

export function createAdmission(replicas: readonly Replica[], limits: FleetLimits): Admission {
  const sessions = createSessionTable(limits.maxSessions)
  /** Calls that wait for one replica, and last those that wait for any, in order of arrival. */
  const queues: readonly Map<number, Waiter>[] = [...replicas, null].map(() => new Map())
  const anywhere = queues[replicas.length] as Map<number, Waiter>
  let arrivals = 0
  let holds = 0
  let moves = 0

  const waiting = () => queues.reduce((sum, queue) => sum + queue.size, 0)
  const loads = () =>
    replicas.map((replica) => ({
      usable: isUsable(replica),
      inFlight: replica.inFlight,
      waiting: queues[replica.index]!.size,
      sessions: sessions.count(replica.index),
    }))
  const take = (affinity: string, replica: Replica, moved: boolean): Replica => {
    sessions.pin(affinity, replica.index)
    if (moved) moves++
    replica.inFlight++
    return replica
  }

  /** The first waiting call among those that replica `index` may take. */
  function next(index: number): { sequence: number; waiter: Waiter; queue: Map<number, Waiter> } | null {
    let first: { sequence: number; waiter: Waiter; queue: Map<number, Waiter> } | null = null
    for (const queue of [queues[index]!, anywhere]) {
      const [entry] = queue
      if (entry && (!first || entry[0] < first.sequence)) first = { sequence: entry[0], waiter: entry[1], queue }
    }
    return first
  }

  function fill(replica: Replica): void {
    while (holds === 0 && isUsable(replica) && replica.inFlight < limits.maxInFlight) {
      const found = next(replica.index)
      if (!found) return
      found.queue.delete(found.sequence)
      const pinned = sessions.get(found.waiter.affinity)
      found.waiter.admit(take(found.waiter.affinity, replica, pinned !== undefined && pinned !== replica.index))
    }
  }

  /** Makes calls that wait for a lost replica wait for any, in their order of arrival. */
  function unpin(): void {
    let changed = false
    for (const { index } of replicas.filter((replica) => !isUsable(replica))) {
      for (const [sequence, waiter] of queues[index]!) {
        anywhere.set(sequence, waiter)
        changed = true
      }
      queues[index]!.clear()
    }
    if (!changed) return
    const sorted = [...anywhere].sort(([left], [right]) => left - right)
    anywhere.clear()
    for (const [sequence, waiter] of sorted) anywhere.set(sequence, waiter)
  }

  function pump(): void {
    if (holds > 0) return
    unpin()
    // Each call goes to the least loaded replica, so that many waiting calls are spread.
    for (;;) {
      const open = replicas.filter((replica) => isUsable(replica) && replica.inFlight < limits.maxInFlight && next(replica.index))
      const [least] = open.sort((left, right) => left.inFlight - right.inFlight)
      const found = least && next(least.index)
      if (!found) return
      found.queue.delete(found.sequence)
      const pinned = sessions.get(found.waiter.affinity)
      found.waiter.admit(take(found.waiter.affinity, least, pinned !== undefined && pinned !== least.index))
    }
  }

  return {
    sessions,
    async enter(affinity, signal) {
      signal.throwIfAborted()
      const choice = holds > 0 ? ({ kind: 'wait-anywhere' } as const) : chooseReplica(loads(), sessions.get(affinity), limits)
      if (choice.kind === 'take') return take(affinity, replicas[choice.index] as Replica, choice.moved)
      if (waiting() >= limits.maxWaiting) {
        throw new TrainError(
          'POLICY_RATE_LIMITED',
          `${limits.maxWaiting} calls wait for a server already; raise maxWaiting, add servers, or lower the concurrency.`,
        )
      }
      const pinned = sessions.get(affinity)
      const home = choice.kind === 'wait' ? choice.index : holds > 0 && pinned !== undefined ? pinned : replicas.length
      const queue = queues[home] as Map<number, Waiter>
      const sequence = arrivals++
      return new Promise<Replica>((resolve, reject) => {
        const giveUp = () => {
          queue.delete(sequence)
          anywhere.delete(sequence)
          reject(signal.reason)
        }
        const settled = () => signal.removeEventListener('abort', giveUp)
        signal.addEventListener('abort', giveUp, { once: true })
        queue.set(sequence, {
          affinity,
          since: Date.now(),
          admit(replica) {
            settled()
            resolve(replica)
          },
          reject(error) {
            settled()
            reject(error)
          },
        })
      })
    },
    leave(replica) {
      replica.inFlight--
      fill(replica)
    },
    hold() {
      holds++
    },
    release() {
      holds--
      pump()
    },
    pump,
    expire(since) {
      if (holds > 0 || replicas.some(isUsable)) return
      unpin()
      for (const [sequence, waiter] of anywhere) {
        if (waiter.since > since) return
        anywhere.delete(sequence)
        waiter.reject(noReplica(replicas))
      }
    },
    rejectAll(error) {
      for (const queue of queues) {
        for (const waiter of queue.values()) waiter.reject(error)
        queue.clear()
      }
    },
    isHeld: () => holds > 0,
    waiting,
    waitingSince: () =>
      queues.reduce<number | null>((oldest, queue) => {
        const [first] = queue.values()
        return first && (oldest === null || first.since < oldest) ? first.since : oldest
      }, null),
    moves: () => moves,
  }
}

/** The error for the reason why no call can be served. */
export function noReplica(replicas: readonly Replica[]): TrainError {
  const urls = replicas.map(({ url }) => url).join(', ')
  if (replicas.every(({ stale }) => stale))
    return new TrainError('POLICY_STALE_WEIGHTS', `Every server (${urls}) samples from other weights than were published; publish again.`)
  return new TrainError('POLICY_UNAVAILABLE', `No server is well (${urls}); check that they run.`)
}
