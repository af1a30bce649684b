import type { TraceHeaders } from '@aworld-train/core'
import type { ExchangeHandler } from './exchange.ts'
import type { FleetLimits } from './fleet-limits.ts'
import type { OutOfService, Replica } from './replica.ts'
import type { Observation } from './replica-health.ts'
import type { ServerKind } from './server-kind.ts'

export type FleetEvent =
  | { readonly type: 'replica-out'; readonly server: string; readonly reason: OutOfService }
  | { readonly type: 'replica-back'; readonly server: string }
  /** The server started again, with its initial weights. */
  | { readonly type: 'replica-restarted'; readonly server: string; readonly label: string | null }
  | { readonly type: 'call-retried'; readonly server: string; readonly why: string }
  | { readonly type: 'weights-published'; readonly server: string; readonly version: number; readonly policy: string | undefined }
  | { readonly type: 'weights-failed'; readonly server: string; readonly version: number; readonly error: Error }

export interface FleetOptions extends Partial<FleetLimits> {
  /** Base URLs of the servers, such as http://127.0.0.1:8000. */
  readonly replicas: readonly string[]
  /** Sent as a bearer token. */
  readonly apiKey?: string | undefined
  /** Version of the weights that the servers start with; 0 by default. */
  readonly weightVersion?: number | undefined
  readonly onEvent?: ((event: FleetEvent) => void) | undefined
}

export interface FleetCall {
  readonly path: string
  /** Builds the body once the replica is chosen. `version` is the one that samples there, and `salt` names it for prefix caches. */
  readonly body: (chosen: { readonly version: number; readonly salt: string }) => Buffer | string
  readonly stream: boolean
  readonly affinity: string
  readonly policy?: string | undefined
  /** Header lines that make the server's spans part of the caller's trace. */
  readonly traceHeaders?: TraceHeaders | undefined
}

export interface FleetOutcome {
  readonly replica: string
  /** Versions of the replica during its answer, in order. */
  readonly weightVersions: readonly number[]
}

export interface ReplicaState {
  readonly server: string
  readonly inFlight: number
  readonly sessions: number
  readonly weightVersion: number
  /** `null` while it takes calls. */
  readonly out: OutOfService | null
}

export interface FleetCounts {
  readonly inFlight: number
  readonly waiting: number
  /** How long the oldest waiting call has waited; 0 if none waits. */
  readonly longestWaitMs: number
  readonly sessions: number
  /** Number of rollouts that left their replica and so lost its cache. */
  readonly moves: number
  readonly retries: number
  readonly failures: number
}

/** Servers of one kind with the same weights: places, stickiness, health and retries of the calls to them. */
export interface Fleet {
  readonly kind: ServerKind
  readonly limits: FleetLimits
  /** Version of the weights that were published last, or of an adapter if `policy` names one. */
  weightVersion(policy?: string): number
  /**
   * Sends a call. Rejects with a typed error or with the signal's reason; in the latter case the connection closes, so that the server
   * stops.
   */
  send(call: FleetCall, handler: ExchangeHandler, signal: AbortSignal): Promise<FleetOutcome>
  /** Takes a server out and resolves when no call is in flight there. */
  drain(server: string, signal: AbortSignal): Promise<void>
  /** Brings a drained server back. */
  restore(server: string): void
  /** The rollout is over, so its replica need not be remembered. */
  forget(affinity: string): void
  replicas(): readonly ReplicaState[]
  counts(): FleetCounts
  close(): Promise<void>
}

/** The inner side of a fleet, which the weight updater needs beside the public one. */
export interface FleetParts {
  readonly members: readonly Replica[]
  readonly emit: (event: FleetEvent) => void
  /** Makes new calls wait until `release` has been called as often. */
  hold(): void
  release(): void
  /** Called repeatedly with a server that may have other weights than the published ones, while it is marked stale. */
  onRestart: ((replica: Replica) => void) | null
  /** Ignores the results of probes while an update runs. */
  pauseProbes(): void
  resumeProbes(): void
  setPublished(version: number, policy?: string): void
  /** Sends past admission, over a connection of its own, to one replica. */
  sendTo(replica: Replica, call: FleetCall, handler: ExchangeHandler, signal: AbortSignal): Promise<FleetOutcome>
  /** Resolves when no call is in flight at any of these. */
  drained(replicas: readonly Replica[], signal: AbortSignal): Promise<void>
  observe(replica: Replica, observation: Observation): void
  setStale(replica: Replica, stale: boolean): void
}
