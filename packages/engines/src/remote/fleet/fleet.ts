import { TrainError } from '@aworld-train/core'
import { Admission, noReplica } from './admission.ts'
import { Drains } from './drains.ts'
import type { ExchangeHandler } from './exchange.ts'
import type { FleetLimits } from './fleet-limits.ts'
import type { Fleet, FleetCall, FleetCounts, FleetEvent, FleetOptions, FleetOutcome, FleetParts, ReplicaState } from './fleet-types.ts'
import { createProbes, type Probes } from './probes.ts'
import { readFleetOptions } from './read-fleet-options.ts'
import { createReplica, currentVersion, isUsable, outOfService, type Replica } from './replica.ts'
import { nextHealth, type Observation } from './replica-health.ts'
import { type Failure, mayRetry } from './retry.ts'
import { sendOnce, type Verdict } from './send-once.ts'
import type { ServerKind } from './server-kind.ts'

/** A fleet with its inner side, for the modules of this package. */
export const fleetParts = (fleet: Fleet): Fleet & FleetParts => fleet as ServerFleet

/**
 * Connects to servers that others run. None needs to answer now; those that do not are taken in when they do. Throws CONFIG_INVALID for an
 * invalid address.
 */
export async function createFleet(kind: ServerKind, options: FleetOptions): Promise<Fleet> {
  const fleet = new ServerFleet(kind, options)
  await fleet.start()
  return fleet
}

class ServerFleet implements Fleet, FleetParts {
  readonly kind: ServerKind
  readonly limits: FleetLimits
  readonly members: readonly Replica[]
  readonly emit: (event: FleetEvent) => void
  onRestart: ((replica: Replica) => void) | null = null
  readonly #headers: Record<string, string>
  readonly #admission: Admission
  readonly #probes: Probes
  readonly #drains = new Drains()
  /** The version that was published last, by policy; the base weights are ''. */
  readonly #published: Map<string, number>
  /** Whether the caller said which version the servers start with. */
  readonly #isVersionGiven: boolean
  #startVersion: number
  #retries = 0
  #failures = 0
  #closed = false

  constructor(kind: ServerKind, options: FleetOptions) {
    const { apiKey, weightVersion = 0, onEvent = () => {} } = options
    const { urls, limits } = readFleetOptions(options)
    this.kind = kind
    this.limits = limits
    this.emit = onEvent
    this.#headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }
    this.#isVersionGiven = options.weightVersion !== undefined
    this.#startVersion = weightVersion
    this.#published = new Map([['', weightVersion]])
    this.members = urls.map((url, index) =>
      createReplica({
        index,
        url,
        headers: this.#headers,
        limits,
        weightVersion,
        // A server that closes idle sockets unexpectedly may have ended, and its successor may have other weights, so it is probed.
        onServerClosed: (replica) => this.#probes.soon(replica),
      }),
    )
    this.#admission = new Admission(this.members, limits)
    this.#probes = createProbes({
      kind,
      members: this.members,
      limits,
      observe: (replica, observation) => this.observe(replica, observation),
      onTick: () => this.#tick(),
      onRestart: (replica, label) => this.#noteRestart(replica, label),
    })
  }

  async start(): Promise<void> {
    await this.#probes.start()
    this.#adoptVersion()
  }

  weightVersion(policy = ''): number {
    return this.#published.get(policy) ?? (this.#published.get('') as number)
  }

  setPublished(version: number, policy = ''): void {
    this.#published.set(policy, version)
  }

  async send(call: FleetCall, handler: ExchangeHandler, signal: AbortSignal): Promise<FleetOutcome> {
    this.#assertOpen()
    for (let before: readonly Failure[] = []; ; ) {
      if (this.members.every(({ stale }) => stale) && !this.#admission.isHeld()) throw noReplica(this.members)
      const replica = await this.#admission.enter(call.affinity, signal)
      let result: Verdict
      try {
        result = await this.#once(replica, call, handler, signal, before.length > 0)
      } finally {
        this.#endCall(replica)
      }
      if ('outcome' in result) return result.outcome
      if (!this.#triesAgain(replica, result, before)) throw result.error
      before = [...before, result.failure]
    }
  }

  async sendTo(replica: Replica, call: FleetCall, handler: ExchangeHandler, signal: AbortSignal): Promise<FleetOutcome> {
    this.#assertOpen()
    replica.inFlight++
    try {
      const result = await this.#once(replica, call, handler, signal, true)
      if ('outcome' in result) return result.outcome
      throw result.error
    } finally {
      this.#endCall(replica)
    }
  }

  async drain(server: string, signal: AbortSignal): Promise<void> {
    const replica = this.#find(server)
    this.#change(replica, { draining: true })
    await this.drained([replica], signal)
  }

  restore(server: string): void {
    this.#change(this.#find(server), { draining: false })
  }

  drained(replicas: readonly Replica[], signal: AbortSignal): Promise<void> {
    return this.#drains.until(replicas, signal)
  }

  forget(affinity: string): void {
    this.#admission.sessions.forget(affinity)
  }

  hold(): void {
    this.#admission.hold()
  }

  release(): void {
    this.#admission.release()
  }

  pauseProbes(): void {
    this.#probes.pause()
  }

  resumeProbes(): void {
    this.#probes.resume()
  }

  observe(replica: Replica, observation: Observation): void {
    this.#change(replica, { health: nextHealth(replica.health, observation, this.limits) })
  }

  setStale(replica: Replica, stale: boolean): void {
    this.#change(replica, { stale })
  }

  replicas(): readonly ReplicaState[] {
    return this.members.map((replica) => ({
      server: replica.url,
      inFlight: replica.inFlight,
      sessions: this.#admission.sessions.count(replica.index),
      weightVersion: currentVersion(replica),
      out: outOfService(replica),
    }))
  }

  counts(): FleetCounts {
    const { sessions, waiting, waitingSince, moves } = this.#admission
    return {
      inFlight: this.members.reduce((sum, { inFlight }) => sum + inFlight, 0),
      waiting,
      longestWaitMs: waitingSince === null ? 0 : Date.now() - waitingSince,
      sessions: sessions.size(),
      moves,
      retries: this.#retries,
      failures: this.#failures,
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    const reason = new TrainError('POLICY_UNAVAILABLE', `The connection to ${this.#urls} was closed.`)
    this.#admission.rejectAll(reason)
    await this.#probes.close()
    await Promise.all(this.members.flatMap(({ connections, admin }) => [connections.close(reason), admin.close()]))
  }

  get #urls(): string {
    return this.members.map(({ url }) => url).join(', ')
  }

  #assertOpen(): void {
    if (this.#closed) throw new TrainError('POLICY_UNAVAILABLE', `The connection to ${this.#urls} is closed; open another.`)
  }

  #find(server: string): Replica {
    const replica = this.members.find(({ url }) => url === server.replace(/\/+$/, ''))
    if (replica) return replica
    throw new TrainError('CONFIG_INVALID', `No server "${server}" in this fleet; it has ${this.#urls}.`)
  }

  /** Sends once to a replica, and notes what a failure says of it. */
  async #once(replica: Replica, call: FleetCall, handler: ExchangeHandler, signal: AbortSignal, fresh: boolean): Promise<Verdict> {
    const verdict = await sendOnce(replica, call, handler, signal, { headers: this.#headers, fresh })
    if ('outcome' in verdict) return verdict
    if (verdict.sign === 'unreachable') this.observe(replica, 'connect-failed')
    if (verdict.sign === 'uncertain') this.#probes.soon(replica)
    return verdict
  }

  /** Whether a failed call is sent once more. Both outcomes are counted. */
  #triesAgain(replica: Replica, { failure, error }: Extract<Verdict, { error: TrainError }>, before: readonly Failure[]): boolean {
    if (!this.#closed && this.members.some(isUsable) && mayRetry(failure, before, this.limits.raceMs)) {
      this.#retries++
      this.emit({ type: 'call-retried', server: replica.url, why: error.message })
      return true
    }
    this.#failures++
    return false
  }

  #endCall(replica: Replica): void {
    this.#admission.leave(replica)
    this.#drains.check()
  }

  /** Changes a replica's state, then reports the effects. */
  #change(replica: Replica, changed: Partial<Pick<Replica, 'health' | 'draining' | 'stale'>>): void {
    const before = outOfService(replica)
    Object.assign(replica, changed)
    const after = outOfService(replica)
    if (before === after) return
    if (after === null) this.emit({ type: 'replica-back', server: replica.url })
    else this.emit({ type: 'replica-out', server: replica.url, reason: after })
    this.#admission.pump()
    if (this.members.every(({ stale }) => stale)) this.#admission.rejectAll(noReplica(this.members))
  }

  #tick(): void {
    this.#admission.expire(Date.now() - this.limits.unavailableMs)
    for (const replica of this.members) if (replica.stale && replica.health.healthy) this.onRestart?.(replica)
  }

  #noteRestart(replica: Replica, label: string | null): void {
    this.emit({ type: 'replica-restarted', server: replica.url, label })
    const initial = [...this.#published].every(([policy, version]) => policy === '' && version === this.#startVersion)
    if (initial && label === replica.firstLabel) return
    replica.restarts++
    this.setStale(replica, true)
    this.onRestart?.(replica)
  }

  /** Takes over the version that all servers use as the name of their weights, which an earlier process of the run gave them. */
  #adoptVersion(): void {
    const labels = new Set(this.members.map(({ label }) => label))
    const [label] = labels
    if (this.#isVersionGiven || labels.size !== 1 || !/^\d+$/.test(label ?? '')) return
    this.#startVersion = Number(label)
    this.#published.set('', this.#startVersion)
    for (const replica of this.members) replica.history.set('', [this.#startVersion])
  }
}
