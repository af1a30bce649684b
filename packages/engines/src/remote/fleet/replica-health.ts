import type { FleetLimits } from './fleet-limits.ts'

export interface Health {
  readonly healthy: boolean
  /** Probes in a row whose result is the opposite of `healthy`. */
  readonly against: number
}

export type Observation = 'probe-ok' | 'probe-failed' | 'connect-failed'

export const healthyAtStart: Health = { healthy: true, against: 0 }

/**
 * A replica's health after an observation. Some failed probes in a row take it out, some good ones bring it back, and a refused connection
 * takes it out at once. Answered calls do not count, because a server may still answer although it fails its probes.
 */
export function nextHealth(
  { healthy, against }: Health,
  observation: Observation,
  { unhealthyAfter, healthyAfter }: Pick<FleetLimits, 'unhealthyAfter' | 'healthyAfter'>,
): Health {
  if (observation === 'connect-failed') return { healthy: false, against: 0 }
  const agrees = (observation === 'probe-ok') === healthy
  if (agrees) return { healthy, against: 0 }
  const turned = against + 1 >= (healthy ? unhealthyAfter : healthyAfter)
  return turned ? { healthy: !healthy, against: 0 } : { healthy, against: against + 1 }
}
