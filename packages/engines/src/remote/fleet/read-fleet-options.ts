import { TrainError } from '@aworld-train/core'
import { defaultFleetLimits, type FleetLimits } from './fleet-limits.ts'
import type { FleetOptions } from './fleet-types.ts'

/** Limits that may be 0. Every other limit is at least 1. */
const mayBeZero: ReadonlySet<string> = new Set(['maxWaiting', 'repinExcess', 'repinRatio', 'unavailableMs', 'raceMs'])

/**
 * Addresses without a final slash, and every limit. Throws CONFIG_INVALID for an invalid address or key, and for a limit out of its range.
 */
export function readFleetOptions({ replicas, ...options }: FleetOptions): {
  readonly urls: readonly string[]
  readonly limits: FleetLimits
} {
  const limitOptions = Object.entries(options).filter(([name, value]) => name in defaultFleetLimits && value !== undefined)
  const limits: FleetLimits = { ...defaultFleetLimits, ...Object.fromEntries(limitOptions) }
  for (const [name, value] of Object.entries(limits) as [keyof FleetLimits, number][]) {
    const least = mayBeZero.has(name) ? 0 : 1
    if (!(value >= least)) throw new TrainError('CONFIG_INVALID', `${name} of a fleet is ${value}; it must be at least ${least}.`)
  }
  const invalid = replicas.find((url) => !/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
  const twice = replicas.find((url, index) => replicas.indexOf(url) < index)
  if (replicas.length === 0 || invalid !== undefined || twice !== undefined) {
    const wrong = invalid === undefined ? `"${twice}" stands twice among the servers` : `"${invalid}" is not the address of a server`
    const problem = replicas.length === 0 ? 'A fleet has no server' : wrong
    throw new TrainError('CONFIG_INVALID', `${problem}; list base URLs such as http://127.0.0.1:8000.`)
  }
  if (/[^\t\x20-\x7e\x80-\xff]/.test(options.apiKey ?? ''))
    throw new TrainError(
      'CONFIG_INVALID',
      'The apiKey of a fleet holds a character that no header may, such as a line break; give another.',
    )
  return { urls: replicas.map((url) => url.replace(/\/+$/, '')), limits }
}
