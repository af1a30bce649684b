import { createHash } from 'node:crypto'
import { TrainError } from '@aworld-train/protocol'
import { toServerError } from '../http/server-error.ts'
import { createAdmission, noReplica } from './admission.ts'
import { type ExchangeEnd, type ExchangeHandler, exchange } from './exchange.ts'
import { defaultFleetLimits, type FleetLimits } from './fleet-limits.ts'
import type { Fleet, FleetCall, FleetOptions, FleetParts } from './fleet-types.ts'
import { createProbes } from './probes.ts'
import { createReplica, currentVersion, isUsable, outOfService, type Replica, versionsOf } from './replica.ts'
import { nextHealth, type Observation } from './replica-health.ts'
import { type Failure, mayRetry } from './retry.ts'
import type { ServerKind } from './server-kind.ts'

const partsOf = new WeakMap<Fleet, FleetParts>()

/** The inner side of a fleet, for the modules of this package. */
export function fleetParts(fleet: Fleet): FleetParts {
  return partsOf.get(fleet) as FleetParts
}

/**
 * Connects to servers that others run. Servers that do not answer yet are taken in when they do; none needs to answer now.
 * CONFIG_INVALID for an address that is none.
 */
export async function createFleet(kind: ServerKind, options: FleetOptions): Promise<Fleet> {
  const { replicas: urls, apiKey, weightVersion = 0, onEvent = () => {}, ...bounds } = options
  const given = Object.entries(bounds).filter(([name, value]) => name in defaultFleetLimits && value !== undefined)
  const limits: FleetLimits = { ...defaultFleetLimits, ...Object.fromEntries(given) }
  checkLimits(limits)
  const invalid = urls.find((url) => !/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
  const twice = urls.find((url, index) => urls.indexOf(url) < index)
  if (urls.length === 0 || invalid !== undefined || twice !== undefined) {
    const wrong = invalid === undefined ? `"${twice}" stands twice among the servers` : `"${invalid}" is not the address of a server`
    const problem = urls.length === 0 ? 'A fleet has no server' : wrong
    throw new TrainError('CONFIG_INVALID', `${problem}; list base URLs such as http://127.0.0.1:8000.`)
  }
  const headers: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }
  const callHeaders = { ...headers, 'content-type': 'application/json' }
  const streamHeaders = { ...callHeaders, accept: 'text/event-stream' }
  const members = urls.map((url, index) => createReplica({ index, url: url.replace(/\/+$/, ''), headers, limits, weightVersion }))
  const admission = createAdmission(members, limits)
  const published = new Map([['', weightVersion]])
  const drains = new Set<() => void>()
  let startVersion = weightVersion
  let retries = 0
  let failures = 0
  let closed = false

  /** Runs a change of a replica's state, then says what came of it. */
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
  const left = (replica: Replica): void => {
    admission.leave(replica)
    for (const check of drains) check()
  }

  function attempt(replica: Replica, call: FleetCall, handler: ExchangeHandler, signal: AbortSignal): Promise<ExchangeEnd> {
    const version = currentVersion(replica, call.policy)
    const salt = cacheSalt(version, call.policy)
    return exchange(
      replica.pool,
      {
        path: replica.base + call.path,
        headers: call.stream ? streamHeaders : callHeaders,
        body: call.body({ version, salt }),
      },
      handler,
      signal,
    )
  }

  function toError(replica: Replica, end: Exclude<ExchangeEnd, { kind: 'answered' }>): TrainError {
    const { url: server } = replica
    if (end.kind === 'refused') return toServerError({ server, ...end })
    const what = {
      connect: 'could not be reached',
      sent: 'closed the connection without an answer',
      answered: 'closed the connection in the middle of its answer',
    }[end.stage]
    return new TrainError('POLICY_UNAVAILABLE', `${server} ${what}: ${end.cause.message}; check that it runs.`, {
      cause: end.cause,
      details: { server, stage: end.stage },
    })
  }

  /** Sends once to a replica that holds a place for the call. */
  async function once(replica: Replica, call: FleetCall, handler: ExchangeHandler, signal: AbortSignal) {
    const versions = versionsOf(replica, call.policy)
    const first = versions.length - 1
    const { restarts } = replica
    const end = await attempt(replica, call, handler, signal)
    if (end.kind === 'answered' && replica.restarts !== restarts)
      return { failure: { stage: 'answered' } as const, error: restarted(replica) }
    if (end.kind === 'answered') {
      // An adapter that was first published during the call has a history of its own.
      const now = versionsOf(replica, call.policy)
      const weightVersions = now === versions ? versions.slice(first) : [versions[first] as number, ...now]
      return { outcome: { replica: replica.url, weightVersions } }
    }
    if (end.kind === 'failed' && end.cause instanceof TrainError) return { failure: { stage: 'answered' } as const, error: end.cause }
    if (end.kind === 'failed' && end.stage === 'connect') observe(replica, 'connect-failed')
    // A server that ended is found out before its successor, with other weights, gets many calls.
    else if (end.kind === 'failed') probes.soon(replica)
    const failure: Failure =
      end.kind === 'refused' ? { stage: 'status', status: end.status } : { stage: end.stage, reused: end.reused, afterMs: end.afterMs }
    return { failure, error: toError(replica, end) }
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
    onRestart(replica, said) {
      onEvent({ type: 'replica-restarted', server: replica.url, said })
      const initial = [...published].every(([policy, version]) => policy === '' && version === startVersion)
      if (initial && said === replica.firstLabel) return
      replica.restarts++
      change(replica, () => {
        replica.stale = true
      })
      parts.onRestart?.(replica)
    },
  })

  // A server that ends closes sockets that nobody else closes: who comes in its place may have other weights.
  for (const replica of members)
    replica.pool.on('disconnect', (_origin, _targets, error) => {
      if (['UND_ERR_SOCKET', 'ECONNRESET'].includes((error as NodeJS.ErrnoException).code ?? '')) probes.soon(replica)
    })

  const fleet: Fleet = {
    kind,
    limits,
    weightVersion: (policy = '') => published.get(policy) ?? (published.get('') as number),
    async send(call, handler, signal) {
      assertOpen()
      for (let tried = 0; ; tried++) {
        if (members.every(({ stale }) => stale) && !admission.held()) throw noReplica(members)
        const replica = await admission.enter(call.affinity, signal)
        let result: Awaited<ReturnType<typeof once>>
        try {
          result = await once(replica, call, handler, signal)
        } finally {
          left(replica)
        }
        if (result.outcome) return result.outcome
        const { failure, error } = result
        const another = members.some(isUsable)
        if (!closed && another && mayRetry(failure, tried, limits.raceMs)) {
          retries++
          onEvent({ type: 'call-retried', server: replica.url, why: error.message })
          continue
        }
        failures++
        throw error
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
      await Promise.all(members.flatMap(({ pool, admin }) => [pool.destroy(reason), admin.close()]))
    },
  }

  function find(server: string): Replica {
    const replica = members.find(({ url }) => url === server.replace(/\/+$/, ''))
    if (replica) return replica
    throw new TrainError('CONFIG_INVALID', `No server "${server}" in this fleet; it has ${urls.join(', ')}.`)
  }

  /** Servers that were given a number before, by a run that goes on now, keep it. */
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
        const result = await once(replica, call, handler, signal)
        if (result.outcome) return result.outcome
        throw result.error
      } finally {
        left(replica)
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

/** Keys and values of other weights are not taken from a prefix cache. vLLM 0.32 allows 128 characters, none of @ / and backslash. */
function cacheSalt(version: number, policy: string | undefined): string {
  if (policy === undefined) return `${version}`
  return `${createHash('sha256').update(policy).digest('hex').slice(0, 16)}.${version}`
}

function restarted({ url }: Replica): TrainError {
  return new TrainError(
    'POLICY_STALE_WEIGHTS',
    `${url} started again while it answered, with other weights than were published; the call is lost.`,
    {
      details: { server: url },
    },
  )
}

function checkLimits(limits: FleetLimits): void {
  for (const [name, value] of Object.entries(limits) as [keyof FleetLimits, number][]) {
    const least = ['maxWaiting', 'repinExcess', 'repinRatio', 'unavailableMs', 'raceMs'].includes(name) ? 0 : 1
    if (!(value >= least)) throw new TrainError('CONFIG_INVALID', `${name} of a fleet is ${value}; it must be at least ${least}.`)
  }
}
