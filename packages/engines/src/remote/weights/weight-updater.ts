import { TrainError, toTrainError } from '@aworld-train/core'
import type { RemoteTokenEngine } from '../engine/token-engine.ts'
import { fleetParts } from '../fleet/fleet.ts'
import type { Fleet } from '../fleet/fleet-types.ts'
import { type Replica, setVersion } from '../fleet/replica.ts'
import type { InFlightMode } from '../fleet/server-kind.ts'
import { type CheckOptions, compareLogprobs, staleWeights } from './check-weights.ts'
import { sampleCheck } from './sample-check.ts'

export interface WeightUpdaterOptions {
  readonly fleet: Fleet
  /**
   * Treatment of calls in flight. `drain` (default): they end first. `keep`: they wait and continue with the new weights. `abort`: they are
   * cut off.
   */
  readonly inFlight?: InFlightMode | undefined
  /** Compares the logprobs of each server after an update with those of the published weights. */
  readonly check?: (CheckOptions & { readonly engine: RemoteTokenEngine }) | undefined
  /** An update that takes longer is given up, and the servers continue. Default 10 minutes. */
  readonly timeoutMs?: number | undefined
}

export interface Publication {
  /** Version of the new weights, higher than every earlier one. */
  readonly version: number
  /**
   * Folder with safetensors, readable on the servers' machines under this path. Without it the servers have the weights already, and only
   * get `version` as their name if they can; they may be paused. `version` may then be the last published one.
   */
  readonly directory?: string | undefined
  /** Publishes a LoRA adapter under this name, instead of the base weights. */
  readonly policy?: string | undefined
  /** Overrides the updater's option. */
  readonly inFlight?: InFlightMode | undefined
}

export interface PublishReport {
  readonly version: number
  readonly policy: string | undefined
  readonly durationMs: number
  readonly replicas: readonly {
    readonly server: string
    /** Largest |sampled - recomputed| logprob; `null` if nothing was compared. */
    readonly difference: number | null
    readonly error: Error | null
  }[]
}

/** Brings new weights to all servers of a fleet. */
export interface WeightUpdater {
  /**
   * Resolves when every server that could be updated samples the new weights. A server that could not takes no more calls until a later
   * update reaches it. Rejects with POLICY_STALE_WEIGHTS if a server samples other weights than it was given, with the error of a server if
   * none could be updated, and with POLICY_VERSION_CONFLICT for a version that was passed. Updates run one after the other.
   */
  publish(publication: Publication, signal?: AbortSignal): Promise<PublishReport>
}

/** Whether the server reported that it did not load. After any other failure its weights are unknown. */
const wasRefused = (error: unknown): boolean =>
  error instanceof TrainError && typeof error.details?.['status'] === 'number' && error.details['status'] < 500

interface LoadResult {
  readonly replica: Replica
  error: Error | null
  difference: number | null
}

export function createWeightUpdater({ fleet, inFlight = 'drain', check, timeoutMs = 600_000 }: WeightUpdaterOptions): WeightUpdater {
  const parts = fleetParts(fleet)
  const { kind } = fleet
  /** The last publication of each policy, for a server that restarts. */
  const current = new Map<string, Publication>()
  /** Servers that the last publication did not reach. They are tried again. */
  const failed = new Set<Replica>()
  const restoring = new Set<Replica>()
  let queue: Promise<unknown> = Promise.resolve()

  const emit = (replica: Replica, { version, policy }: Publication, error: Error | null): void => {
    if (error) parts.emit({ type: 'weights-failed', server: replica.url, version, error })
    else parts.emit({ type: 'weights-published', server: replica.url, version, policy })
  }

  /** Counts the weights of a server as `version`. */
  async function take(replica: Replica, { version, policy }: Publication, signal: AbortSignal): Promise<void> {
    // This happens before the server gets the name. Until then its answers name the version before, and a call's range allows both.
    setVersion(replica, version, policy)
    if (policy !== undefined) return
    try {
      await kind.nameWeights(replica.admin, String(version), signal)
    } catch (cause) {
      parts.setStale(replica, true)
      throw cause
    }
    replica.label = replica.label === null ? null : String(version)
  }

  async function load(replica: Replica, publication: Publication, mode: InFlightMode, signal: AbortSignal): Promise<void> {
    const { version, directory, policy } = publication
    if (directory === undefined) return await take(replica, publication, signal)
    await kind.pause(replica.admin, mode, signal)
    try {
      if (policy === undefined) {
        await kind.loadWeights(replica.admin, { directory, label: String(version) }, signal)
        replica.label = replica.label === null ? null : String(version)
      } else await kind.loadAdapter(replica.admin, { name: policy, directory }, signal)
      setVersion(replica, version, policy)
    } catch (cause) {
      if (!wasRefused(cause)) parts.setStale(replica, true)
      throw cause
    } finally {
      // A server that stayed paused would serve no more calls, so it is resumed even if the update was abandoned.
      await kind.resume(replica.admin, AbortSignal.timeout(30_000))
    }
  }

  async function update(replica: Replica, publication: Publication, mode: InFlightMode, signal: AbortSignal): Promise<LoadResult> {
    const loaded: LoadResult = { replica, error: null, difference: null }
    try {
      await load(replica, publication, mode, signal)
    } catch (cause) {
      loaded.error = toTrainError(cause, 'POLICY_UNAVAILABLE')
    }
    emit(replica, publication, loaded.error)
    return loaded
  }

  /** Samples on every updated server and compares. A difference becomes the server's error. */
  async function verify(loaded: readonly LoadResult[], publication: Publication, signal: AbortSignal): Promise<void> {
    const updated = loaded.filter(({ error }) => error === null)
    if (!check || updated.length === 0) return
    const { version, policy } = publication
    const calls = updated.flatMap(({ replica }) => check.prompts.map((promptTokenIds) => ({ replica, promptTokenIds })))
    const sampled = await Promise.all(calls.map((call) => sampleCheck({ ...call, engine: check.engine, version, policy, check, signal })))
    const differences = await compareLogprobs(sampled, check)
    for (const each of updated) {
      each.difference = differences.get(each.replica.url) ?? null
      if (each.difference !== null && !(each.difference <= check.tolerance))
        each.error = staleWeights(each.replica.url, each.difference, check.tolerance, version)
    }
  }

  async function publishNow(publication: Publication, outer: AbortSignal | undefined): Promise<PublishReport> {
    const { version, policy, directory } = publication
    const mode = publication.inFlight ?? inFlight
    const deadline = AbortSignal.timeout(timeoutMs)
    const signal = outer ? AbortSignal.any([outer, deadline]) : deadline
    signal.throwIfAborted()
    const last = fleet.weightVersion(policy)
    const passed = directory === undefined ? version < last : version <= last
    if (passed && (policy === undefined || current.has(policy))) {
      const message = `Version ${version} was to be published after ${last}; publish ascending versions.`
      throw new TrainError('POLICY_VERSION_CONFLICT', message, { details: { published: last } })
    }
    const startedAt = performance.now()
    // A server that does not answer is updated when it answers again.
    const targets = parts.members.filter(({ health }) => health.healthy)
    if (targets.length === 0) throw new TrainError('POLICY_UNAVAILABLE', `No server could be updated to version ${version}: none is well.`)
    parts.hold()
    parts.pauseProbes()
    let loaded: LoadResult[] = []
    try {
      if (mode === 'drain' && directory !== undefined) await parts.drained(targets, signal)
      loaded = await Promise.all(targets.map((replica) => update(replica, publication, mode, signal)))
      if (loaded.every(({ error }) => error !== null)) throw (loaded[0] as LoadResult).error
      current.set(policy ?? '', publication)
      failed.clear()
      parts.setPublished(version, policy)
      for (const replica of parts.members) if (!targets.includes(replica)) parts.setStale(replica, true)
      await verify(loaded, publication, signal)
      for (const { replica, error } of loaded) {
        parts.setStale(replica, error !== null)
        if (error) failed.add(replica)
      }
      const stale = loaded.find(({ error }) => error instanceof TrainError && error.code === 'POLICY_STALE_WEIGHTS')
      if (stale) throw stale.error
    } catch (cause) {
      outer?.throwIfAborted()
      if (deadline.aborted)
        throw new TrainError(
          'POLICY_UNAVAILABLE',
          `Version ${version} was not published within ${timeoutMs} ms; look at the servers' logs.`,
          { cause },
        )
      throw cause
    } finally {
      parts.resumeProbes()
      parts.release()
    }
    return {
      version,
      policy,
      durationMs: performance.now() - startedAt,
      replicas: loaded.map(({ replica, error, difference }) => ({ server: replica.url, error, difference })),
    }
  }

  /** Loads the last publication into a server that restarted or missed an update. */
  async function restore(replica: Replica): Promise<void> {
    if (!replica.stale || failed.has(replica) || current.size === 0) return
    const unknown = [...current.values()].find(({ directory }) => directory === undefined)
    if (unknown) {
      failed.add(replica)
      const message = `${replica.url} may not have version ${unknown.version}, which others brought to it; bring it there again and publish it.`
      return emit(replica, unknown, new TrainError('POLICY_STALE_WEIGHTS', message))
    }
    const signal = AbortSignal.timeout(timeoutMs)
    parts.pauseProbes()
    try {
      const results: LoadResult[] = []
      for (const publication of current.values()) results.push(await update(replica, publication, 'abort', signal))
      const [publication] = [...current.values()].slice(-1)
      if (publication && results.every(({ error }) => error === null)) await verify(results.slice(-1), publication, signal)
      if (results.every(({ error }) => error === null)) parts.setStale(replica, false)
      else failed.add(replica)
    } finally {
      parts.resumeProbes()
    }
  }

  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const result = queue.then(work)
    queue = result.catch(() => {})
    return result
  }
  parts.onRestart = (replica) => {
    if (restoring.has(replica)) return
    restoring.add(replica)
    // A server that fails is left out, and an event reports it.
    void inTurn(() => restore(replica))
      .catch(() => {})
      .finally(() => restoring.delete(replica))
  }

  return { publish: (publication, signal) => inTurn(() => publishNow(publication, signal)) }
}
