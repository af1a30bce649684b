import type { FleetLimits } from './fleet-limits.ts'
import type { Replica } from './replica.ts'
import type { Observation } from './replica-health.ts'
import type { ServerKind } from './server-kind.ts'

export interface ProbesOptions {
  readonly kind: ServerKind
  readonly members: readonly Replica[]
  readonly limits: FleetLimits
  observe(replica: Replica, observation: Observation): void
  /** Called when the server's identity has changed; `label` is its present name for its weights. */
  onRestart(replica: Replica, label: string | null): void
  onTick(): void
}

export interface Probes {
  /** Probes every server once. Those that do not answer are out of service until they do. */
  start(): Promise<void>
  /** Probes one server now. */
  soon(replica: Replica): void
  pause(): void
  resume(): void
  close(): Promise<void>
}

/** Time between probes while a server is out of service. */
const eagerMs = 1000

/** Probes the health and identity of every server from time to time, with one timer for all. */
export function createProbes({ kind, members, limits, observe, onRestart, onTick }: ProbesOptions): Probes {
  const { probeIntervalMs, probeTimeoutMs } = limits
  const ended = new AbortController()
  let pauses = 0
  /** Counts pauses: the result of a probe that began before a pause is ignored. */
  let epoch = 0
  let timer: NodeJS.Timeout | undefined
  let round: Promise<unknown> = Promise.resolve()
  const probing = new Set<Replica>()

  /** Compares the identity of a server with its earlier one. The first answer is only remembered. */
  async function identify(replica: Replica, isKnown: boolean): Promise<void> {
    const before = epoch
    const { weights, boot } = await kind.identify(replica.admin, ended.signal)
    if (pauses > 0 || epoch !== before) return
    const restarted = isKnown && ((boot !== null && replica.boot !== null && boot !== replica.boot) || weights !== replica.label)
    replica.boot = boot ?? replica.boot
    replica.label = weights
    if (!isKnown) replica.firstLabel = weights
    if (restarted) onRestart(replica, weights)
  }

  async function probe(replica: Replica, first: boolean): Promise<void> {
    try {
      const { status } = await replica.admin.call(kind.healthPath, { method: 'GET', timeoutMs: probeTimeoutMs, signal: ended.signal })
      if (pauses > 0 && !first) return
      const well = status >= 200 && status < 300
      if (well) {
        const isKnown = replica.label !== null || replica.boot !== null
        await identify(replica, isKnown)
      }
      if (ended.signal.aborted) return
      observe(replica, well ? 'probe-ok' : 'probe-failed')
      if (first && !well) observe(replica, 'connect-failed')
    } catch {
      if (!ended.signal.aborted && (pauses === 0 || first)) observe(replica, first ? 'connect-failed' : 'probe-failed')
    }
  }

  const schedule = () => {
    if (ended.signal.aborted) return
    timer = setTimeout(
      () => {
        onTick()
        round = (pauses > 0 ? Promise.resolve() : Promise.all(members.map((replica) => probe(replica, false)))).finally(schedule)
      },
      members.some(({ health }) => !health.healthy) ? Math.min(probeIntervalMs, eagerMs) : probeIntervalMs,
    )
    timer.unref()
  }

  return {
    async start() {
      round = Promise.all(members.map((replica) => probe(replica, true)))
      await round
      schedule()
    },
    soon(replica) {
      if (probing.has(replica) || ended.signal.aborted || pauses > 0) return
      probing.add(replica)
      round = Promise.all([round, probe(replica, false).finally(() => probing.delete(replica))])
    },
    pause() {
      pauses++
      epoch++
    },
    resume() {
      pauses--
    },
    async close() {
      ended.abort()
      clearTimeout(timer)
      await round
    },
  }
}
