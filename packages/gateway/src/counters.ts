import type { GatewayCounts } from '@aworld-train/core'
import type { SocketRefusal } from '@aworld-train/http'

export type Tally = Record<string, number>

/** Why a request or a socket did not become a call. */
export type Refusal = SocketRefusal | 'unknown-url' | 'unauthorized' | 'too-large' | 'overloaded' | 'wrong-path'

/** Counts of a gateway since it started. */
export interface Counters {
  /** Calls under a valid URL, bad ones included. */
  calls: number
  /** Calls that did not end in a whole answer. */
  failures: number
  /** Requests and sockets that did not become a call, by reason. */
  readonly refusals: Record<Refusal, number>
  continuations: number
  sampledTokens: number
  abandonedTurns: number
  readonly branches: Tally
  readonly tolerated: Tally
  readonly ignored: Tally
  /** Tool calls that were sampled and delivered as text, by kind of problem. */
  readonly parseIssues: Tally
}

/** A tally without a prototype, because its keys come from outside. */
const tally = (): Tally => Object.create(null)

export function createCounters(): Counters {
  return {
    calls: 0,
    failures: 0,
    refusals: {
      'unknown-url': 0,
      unauthorized: 0,
      'too-large': 0,
      incomplete: 0,
      overloaded: 0,
      'wrong-path': 0,
      timeout: 0,
      'headers-too-large': 0,
      'not-http': 0,
      'too-many-sockets': 0,
      'tls-failed': 0,
      'wrong-host': 0,
    },
    continuations: 0,
    sampledTokens: 0,
    abandonedTurns: 0,
    branches: tally(),
    tolerated: tally(),
    ignored: tally(),
    parseIssues: tally(),
  }
}

/** Most distinct names of one tally. Clients choose some of the names, so further names are counted together. */
const maxNames = 64

export function add(counts: Tally, name: string, amount = 1): void {
  const count = counts[name]
  if (count !== undefined) counts[name] = count + amount
  else if (Object.keys(counts).length < maxNames) counts[name] = amount
  else counts['other'] = (counts['other'] ?? 0) + amount
}

export function toGatewayCounts(counters: Counters, inFlight: number): GatewayCounts {
  const { calls, failures, continuations, branches, tolerated, ignored, parseIssues } = counters
  return {
    calls,
    failures,
    continuations,
    branches: { ...branches },
    tolerated: { ...tolerated },
    ignored: { ...ignored },
    parseIssues: { ...parseIssues },
    inFlight,
  }
}
