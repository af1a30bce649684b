import { createHash } from 'node:crypto'
import { TrainError } from '@aworld-train/core'
import { restarted, toCallError } from './call-errors.ts'
import { type ExchangeEnd, type ExchangeHandler, exchange } from './exchange.ts'
import type { FleetCall, FleetOutcome } from './fleet-types.ts'
import { currentVersion, type Replica, versionsOf } from './replica.ts'
import type { Failure } from './retry.ts'

/** The state of a replica when a call was sent there. */
export interface ReplicaSnapshot {
  /** Weight versions of the replica, a list that grows while the call runs. The call may meet those from index `first` on. */
  readonly versions: readonly number[]
  readonly first: number
  readonly restarts: number
}

/** How a call ended at one replica. */
export type Verdict =
  | { readonly outcome: FleetOutcome }
  | {
      readonly failure: Failure
      readonly error: TrainError
      /** What the failure says of the server: it cannot be reached, or it may have ended and must be probed. */
      readonly sign: 'unreachable' | 'uncertain' | null
    }

/** Sends a call to a replica, once. `fresh` asks for a new connection. */
export async function sendOnce(
  replica: Replica,
  call: FleetCall,
  handler: ExchangeHandler,
  signal: AbortSignal,
  { headers, fresh }: { readonly headers: Readonly<Record<string, string>>; readonly fresh: boolean },
): Promise<Verdict> {
  const { path, body, stream, policy, traceHeaders } = call
  const before = snapshotOf(replica, policy)
  const version = currentVersion(replica, policy)
  const request = {
    path: replica.base + path,
    headers: { ...headers, 'content-type': 'application/json', ...(stream && { accept: 'text/event-stream' }), ...traceHeaders },
    body: body({ version, salt: cacheSalt(version, policy) }),
    fresh,
  }
  return judge(replica, policy, before, await exchange(replica.connections, request, handler, signal))
}

export function snapshotOf(replica: Pick<Replica, 'history' | 'restarts'>, policy: string | undefined): ReplicaSnapshot {
  const versions = versionsOf(replica, policy)
  return { versions, first: versions.length - 1, restarts: replica.restarts }
}

export function judge(
  replica: Pick<Replica, 'history' | 'restarts' | 'url'>,
  policy: string | undefined,
  { versions, first, restarts }: ReplicaSnapshot,
  end: ExchangeEnd,
): Verdict {
  const { url } = replica
  if (end.kind === 'answered' && replica.restarts !== restarts) return { failure: { stage: 'answered' }, error: restarted(url), sign: null }
  if (end.kind === 'answered') {
    // An adapter that was first published during the call has a new list of versions.
    const now = versionsOf(replica, policy)
    const weightVersions = now === versions ? versions.slice(first) : [versions[first] as number, ...now]
    return { outcome: { replica: url, weightVersions } }
  }
  const error = toCallError(url, end)
  if (end.kind === 'refused') return { failure: { stage: 'status', status: end.status }, error, sign: null }
  const { stage, reused, afterMs, cause } = end
  if (cause instanceof TrainError) return { failure: { stage: 'answered' }, error: cause, sign: null }
  // After a failed call the server may have ended, and its successor would sample with other weights.
  return { failure: { stage, reused, afterMs }, error, sign: stage === 'connect' ? 'unreachable' : 'uncertain' }
}

/**
 * The salt that keeps a prefix cache from mixing keys and values of different weights. vLLM 0.32 allows 128 characters, none of @ / and
 * backslash.
 */
function cacheSalt(version: number, policy: string | undefined): string {
  if (policy === undefined) return `${version}`
  return `${createHash('sha256').update(policy).digest('hex').slice(0, 16)}.${version}`
}
