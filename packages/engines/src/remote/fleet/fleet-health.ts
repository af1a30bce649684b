import type { EngineHealth } from '@aworld-train/core'
import type { Fleet } from './fleet-types.ts'
import { serverNames } from './server-names.ts'

/** The state of a fleet for `/ready` and `/metrics`. Calls wait for the fleet, not for one of its servers. */
export function fleetHealth(fleet: Fleet): EngineHealth {
  const { waiting, longestWaitMs } = fleet.counts()
  const states = fleet.replicas()
  const names = serverNames(states.map(({ server }) => server))
  const replicas = states.map(({ inFlight, out }, index) => ({
    name: names[index]!,
    ready: out === null,
    reason: out,
    inFlight,
    queued: index === 0 ? waiting : 0,
    oldestQueuedMs: index === 0 ? longestWaitMs : 0,
  }))
  const ready = replicas.some((replica) => replica.ready)
  const reasons = states.map(({ out }, index) => `${names[index]} ${out ?? 'takes calls'}`)
  return { ready, reason: ready ? null : `no server takes calls (${reasons.join(', ')})`, replicas }
}
