import { createHash } from 'node:crypto'
import { TrainError } from '@aworld-train/core'
import { createAdmission, noReplica } from './admission.ts'
import { restarted, toCallError } from './call-errors.ts'
import { type ExchangeEnd, type ExchangeHandler, exchange } from './exchange.ts'
import type { Fleet, FleetCall, FleetOptions, FleetOutcome, FleetParts } from './fleet-types.ts'
import { createProbes } from './probes.ts'
import { readFleetOptions } from './read-fleet-options.ts'
import { createReplica, currentVersion, isUsable, outOfService, type Replica, versionsOf } from './replica.ts'
import { nextHealth, type Observation } from './replica-health.ts'
import { type Failure, mayRetry } from './retry.ts'
import type { ServerKind } from './server-kind.ts'

const partsOf = new WeakMap<Fleet, FleetParts>()

interface ReplicaSnapshot {
  /** Weight versions of the replica, a list that grows while the call runs. The call may meet those from index `first` on. */
  readonly versions: readonly number[]
  readonly first: number
  readonly restarts: number
}

type Verdict = { readonly outcome: FleetOutcome } | { readonly failure: Failure; readonly error: TrainError }

/** The inner side of a fleet, for the modules of this package. */
export function fleetParts(fleet: Fleet): FleetParts {
  return partsOf.get(fleet) as FleetParts
}

/**
 * Connects to servers that others run. None needs to answer now; those that do not are taken in when they do. Throws CONFIG_INVALID for an
 * invalid address.
 */
export async function createFleet(kind: ServerKind, options: FleetOptions): Promise<Fleet> {
  const { apiKey, weightVersion = 0, onEvent = () => {} } = options
  const { urls, limits } = readFleetOptions(options)
  const headers: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }
  const callHeaders = { ...headers, 'content-type': 'application/json' }
  const streamHeaders = { ...callHeaders, accept: 'text/event-stream' }
  const members = urls.map((url, index) =>
    createReplica({
      index,
      url,
      headers,
      limits,
      weightVersion,
      // A server that closes idle sockets unexpectedly may have ended, and its successor may have other weights, so it is probed.
      onServerClosed: (replica) => probes.soon(replica),
    }),
  )
  const admission = createAdmission(members, limits)
  const published = new Map([['', weightVersion]])
  const drains = new Set<() => void>()
  let startVersion = weightVersion
  let retries = 0
  let failures = 0
  let closed = false

  /** Changes a replica's state, then reports the effects. */
  function change(replica: Replica, apply: () => void): void {
    const before = outOfService(replica)
    apply()
    const after = outOfService(replica)
    if (before === after) return
    if (after === null) onEvent({ type: 'replica-back', server: replica.url })
    else onEvent({ type: 'replica-out', server: replica.url, reason: after })
    admission.pump()
    if (members.every(({ stale }) => stale)) admission.rejectAll(noReplica(members))
  }
  const observe = (replica: Replica, observation: Observation): void =>
    change(replica, () => {
      replica.health = nextHealth(replica.health, observation, limits)
    })
  const endCall = (replica: Replica): void => {
    admission.leave(replica)
    if (drains.size > 0) for (const check of drains) check()
  }

  /** The state of a replica when a call was sent there. */
  function snapshotOf(replica: Replica, policy: string | undefined): ReplicaSnapshot {
    const versions = versionsOf(replica, policy)
    return { versions, first: versions.length - 1, restarts: replica.restarts }
  }

  function judge(replica: Replica, policy: string | undefined, { versions, first, restarts }: ReplicaSnapshot, end: ExchangeEnd): Verdict {
    if (end.kind === 'answered' && replica.restarts !== restarts) return { failure: { stage: 'answered' }, error: restarted(replica.url) }
    if (end.kind === 'answered') {
      // An adapter that was first published during the call has a new list of versions.
      const now = versionsOf(replica, policy)
      const weightVersions = now === versions ? versions.slice(first) : [versions[first] as number, ...now]
      return { outcome: { replica: replica.url, weightVersions } }
    }
    if (end.kind === 'failed' && end.cause instanceof TrainError) return { failure: { stage: 'answered' }, error: end.cause }
    if (end.kind === 'failed' && end.stage === 'connect') observe(replica, 'connect-failed')
    // A failed call is a reason to probe: its server may have ended, and its successor would sample with other weights.
    else if (end.kind === 'failed') probes.soon(replica)
    const failure: Failure =
      end.kind === 'refused' ? { stage: 'status', status: end.status } : { stage: end.stage, reused: end.reused, afterMs: end.afterMs }
    return { failure, error: toCallError(replica.url, end) }
  }

  /** Whether a failed call is sent once more. Both outcomes are counted. */
  function triesAgain(replica: Replica, { failure, error }: Extract<Verdict, { error: TrainError }>, before: readonly Failure[]): boolean {
    if (!closed && members.some(isUsable) && mayRetry(failure, before, limits.raceMs)) {
      retries++
      onEvent({ type: 'call-retried', server: replica.url, why: error.message })
      return true
    }
    failures++
    return false
  }

  /** Sends once to a replica. */
  async function once(replica: Replica, call: FleetCall, handler: ExchangeHandler, signal: AbortSignal, fresh: boolean): Promise<Verdict> {
    const { path, body, stream, policy, traceHeaders } = call
    const before = snapshotOf(replica, policy)
    const version = currentVersion(replica, policy)
    const request = {
      path: replica.base + path,
      headers: { ...(stream ? streamHeaders : callHeaders), ...traceHeaders },
      body: body({ version, salt: cacheSalt(version, policy) }),
      fresh,
    }
    return judge(replica, policy, before, await exchange(replica.connections, request, handler, signal))
  }

  function assertOpen(): void {
    if (closed) throw new TrainError('POLICY_UNAVAILABLE', `The connection to ${urls.join(', ')} is closed; open another.`)
  }

  const probes = createProbes({
    kind,
    members,
    limits,
    observe,
    onTick() {
      admission.expire(Date.now() - limits.unavailableMs)
      for (const replica of members) if (replica.stale && replica.health.healthy) parts.onRestart?.(replica)
    },
    onRestart(replica, label) {
      onEvent({ type: 'replica-restarted', server: replica.url, label })
      const initial = [...published].every(([policy, version]) => policy === '' && version === startVersion)
      if (initial && label === replica.firstLabel) return
      replica.restarts++
      change(replica, () => {
        replica.stale = true
      })
      parts.onRestart?.(replica)
    },
  })

  const fleet: Fleet = {
    kind,
    limits,
    weightVersion: (policy = '') => published.get(policy) ?? (published.get('') as number),
    async send(call, handler, signal) {
      assertOpen()
      for (let before: readonly Failure[] = []; ; ) {
        if (members.every(({ stale }) => stale) && !admission.isHeld()) throw noReplica(members)
        const replica = await admission.enter(call.affinity, signal)
        let result: Verdict
        try {
          result = await once(replica, call, handler, signal, before.length > 0)
        } finally {
          endCall(replica)
        }
        if ('outcome' in result) return result.outcome
        if (!triesAgain(replica, result, before)) throw result.error
        before = [...before, result.failure]
      }
    },
    async drain(server, signal) {
      const replica = find(server)
      change(replica, () => {
        replica.draining = true
      })
      await parts.drained([replica], signal)
    },
    restore(server) {
      const replica = find(server)
      change(replica, () => {
        replica.draining = false
      })
    },
    forget: (affinity) => admission.sessions.forget(affinity),
    replicas: () =>
      members.map((replica) => ({
        server: replica.url,
        inFlight: replica.inFlight,
        sessions: admission.sessions.count(replica.index),
        weightVersion: currentVersion(replica),
        out: outOfService(replica),
      })),
    counts() {
      const since = admission.waitingSince()
      return {
        inFlight: members.reduce((sum, { inFlight }) => sum + inFlight, 0),
        waiting: admission.waiting(),
        longestWaitMs: since === null ? 0 : Date.now() - since,
        sessions: admission.sessions.size(),
        moves: admission.moves(),
        retries,
        failures,
      }
    },
    async close() {
      if (closed) return
      closed = true
      const reason = new TrainError('POLICY_UNAVAILABLE', `The connection to ${urls.join(', ')} was closed.`)
      admission.rejectAll(reason)
      await probes.close()
      await Promise.all(members.flatMap(({ connections, admin }) => [connections.close(reason), admin.close()]))
    },
  }

  function find(server: string): Replica {
    const replica = members.find(({ url }) => url === server.replace(/\/+$/, ''))
    if (replica) return replica
    throw new TrainError('CONFIG_INVALID', `No server "${server}" in this fleet; it has ${urls.join(', ')}.`)
  }

  /** Takes over the version that all servers use as the name of their weights, which an earlier process of the run gave them. */
  function adoptVersion(): void {
    const labels = new Set(members.map(({ label }) => label))
    const [label] = labels
    if (options.weightVersion !== undefined || labels.size !== 1 || !/^\d+$/.test(label ?? '')) return
    startVersion = Number(label)
    published.set('', startVersion)
    for (const replica of members) replica.history.set('', [startVersion])
  }

  const parts: FleetParts = {
    fleet,
    members,
    emit: onEvent,
    hold: admission.hold,
    release: admission.release,
    onRestart: null,
    pauseProbes: probes.pause,
    resumeProbes: probes.resume,
    setPublished: (version, policy = '') => void published.set(policy, version),
    async sendTo(replica, call, handler, signal) {
      assertOpen()
      replica.inFlight++
      try {
        const result = await once(replica, call, handler, signal, true)
        if ('outcome' in result) return result.outcome
        throw result.error
      } finally {
        endCall(replica)
      }
    },
    drained(replicas, signal) {
      return new Promise((resolve, reject) => {
        const check = () => {
          if (replicas.some(({ inFlight }) => inFlight > 0)) return
          drains.delete(check)
          signal.removeEventListener('abort', giveUp)
          resolve()
        }
        const giveUp = () => {
          drains.delete(check)
          reject(signal.reason)
        }
        if (signal.aborted) return reject(signal.reason)
        drains.add(check)
        signal.addEventListener('abort', giveUp, { once: true })
        check()
      })
    },
    observe,
    setStale: (replica, stale) =>
      change(replica, () => {
        replica.stale = stale
      }),
  }
  partsOf.set(fleet, parts)
  await probes.start()
  adoptVersion()
  return fleet
}

/**
 * The salt that keeps a prefix cache from mixing keys and values of different weights. vLLM 0.32 allows 128 characters, none of @ / and
 * backslash.
 */
function cacheSalt(version: number, policy: string | undefined): string {
  if (policy === undefined) return `${version}`
  return `${createHash('sha256').update(policy).digest('hex').slice(0, 16)}.${version}`
}
