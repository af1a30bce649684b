import { TrainError } from '@aworld-train/core'
import { CallQueues } from './call-queues.ts'
import { chooseReplica } from './choose-replica.ts'
import type { FleetLimits } from './fleet-limits.ts'
import { isUsable, type Replica } from './replica.ts'
import { createSessionTable, type SessionTable } from './session-table.ts'

/** Gives calls a place at a replica, in order of arrival, and takes it back. */
export class Admission {
  readonly sessions: SessionTable
  readonly #replicas: readonly Replica[]
  readonly #limits: FleetLimits
  readonly #queues: CallQueues<Replica>
  #holds = 0
  #moves = 0

  constructor(replicas: readonly Replica[], limits: FleetLimits) {
    this.#replicas = replicas
    this.#limits = limits
    this.#queues = new CallQueues(replicas.length)
    this.sessions = createSessionTable(limits.maxSessions)
  }

  get waiting(): number {
    return this.#queues.size
  }

  /** Unix milliseconds since when the oldest call waits; `null` if none does. */
  get waitingSince(): number | null {
    return this.#queues.since
  }

  /** Number of rollouts that left their replica. */
  get moves(): number {
    return this.#moves
  }

  isHeld(): boolean {
    return this.#holds > 0
  }

  /** Resolves to a replica that then has one more call in flight. Each call is matched by one `leave`. Rejects with the signal's reason. */
  async enter(affinity: string, signal: AbortSignal): Promise<Replica> {
    signal.throwIfAborted()
    const pinned = this.sessions.get(affinity)
    const choice = this.isHeld() ? ({ kind: 'wait-anywhere' } as const) : chooseReplica(this.#loads(), pinned, this.#limits)
    if (choice.kind === 'take') return this.#take(affinity, this.#replicas[choice.index] as Replica, choice.moved)
    const { maxWaiting } = this.#limits
    if (this.waiting >= maxWaiting) {
      throw new TrainError(
        'POLICY_RATE_LIMITED',
        `${maxWaiting} calls wait for a server already; raise maxWaiting, add servers, or lower the concurrency.`,
      )
    }
    const home = choice.kind === 'wait' ? choice.index : this.isHeld() ? (pinned ?? null) : null
    return new Promise<Replica>((resolve, reject) => {
      const giveUp = () => {
        leaveQueue()
        reject(signal.reason)
      }
      const settled = () => signal.removeEventListener('abort', giveUp)
      signal.addEventListener('abort', giveUp, { once: true })
      const leaveQueue = this.#queues.add(home, {
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
  }

  leave(replica: Replica): void {
    replica.inFlight--
    while (!this.isHeld() && this.#hasRoom(replica) && this.#queues.has(replica.index)) this.#admit(replica)
  }

  /** Makes new calls wait until `release` has been called as often as `hold`. */
  hold(): void {
    this.#holds++
  }

  release(): void {
    this.#holds--
    this.pump()
  }

  /** Admits waiting calls. Called when a replica came, went or has room. */
  pump(): void {
    if (this.isHeld()) return
    this.#unpin()
    // Each call goes to the least loaded replica, so that many waiting calls are spread.
    for (;;) {
      const open = this.#replicas.filter((replica) => this.#hasRoom(replica) && this.#queues.has(replica.index))
      const [least] = open.sort((left, right) => left.inFlight - right.inFlight)
      if (!least) return
      this.#admit(least)
    }
  }

  /** Rejects calls that have waited since before `since` while no replica is healthy. */
  expire(since: number): void {
    if (this.isHeld() || this.#replicas.some(isUsable)) return
    this.#unpin()
    this.#queues.expire(since, () => noReplica(this.#replicas))
  }

  rejectAll(error: unknown): void {
    this.#queues.rejectAll(error)
  }

  #loads() {
    return this.#replicas.map((replica) => ({
      usable: isUsable(replica),
      inFlight: replica.inFlight,
      waiting: this.#queues.count(replica.index),
      sessions: this.sessions.count(replica.index),
    }))
  }

  #hasRoom(replica: Replica): boolean {
    return isUsable(replica) && replica.inFlight < this.#limits.maxInFlight
  }

  #take(affinity: string, replica: Replica, moved: boolean): Replica {
    this.sessions.pin(affinity, replica.index)
    if (moved) this.#moves++
    replica.inFlight++
    return replica
  }

  /** Gives the first call that waits for this replica its place. */
  #admit(replica: Replica): void {
    const call = this.#queues.take(replica.index)
    if (!call) return
    const pinned = this.sessions.get(call.affinity)
    call.admit(this.#take(call.affinity, replica, pinned !== undefined && pinned !== replica.index))
  }

  /** Makes calls that wait for a lost replica wait for any. */
  #unpin(): void {
    this.#queues.unpin(this.#replicas.filter((replica) => !isUsable(replica)).map(({ index }) => index))
  }
}

/** The error for the reason why no call can be served. */
export function noReplica(replicas: readonly Replica[]): TrainError {
  const urls = replicas.map(({ url }) => url).join(', ')
  if (replicas.every(({ stale }) => stale))
    return new TrainError('POLICY_STALE_WEIGHTS', `Every server (${urls}) samples from other weights than were published; publish again.`)
  return new TrainError('POLICY_UNAVAILABLE', `No server is well (${urls}); check that they run.`)
}
