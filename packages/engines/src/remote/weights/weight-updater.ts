import { TrainError, toTrainError } from '@aworld-train/core'
import type { RemoteTokenEngine } from '../engine/token-engine.ts'
import { fleetParts } from '../fleet/fleet.ts'
import type { Fleet, FleetParts } from '../fleet/fleet-types.ts'
import type { Replica } from '../fleet/replica.ts'
import type { InFlightMode } from '../fleet/server-kind.ts'
import { bringWeights } from './bring-weights.ts'
import { type CheckOptions, compareLogprobs, staleWeights } from './check-weights.ts'
import { type Publication, Publications } from './publications.ts'
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

interface LoadResult {
  readonly replica: Replica
  error: Error | null
  difference: number | null
}

export const createWeightUpdater = (options: WeightUpdaterOptions): WeightUpdater => new FleetUpdater(options)

class FleetUpdater implements WeightUpdater {
  readonly #fleet: Fleet & FleetParts
  readonly #inFlight: InFlightMode
  readonly #check: WeightUpdaterOptions['check']
  readonly #timeoutMs: number
  readonly #publications = new Publications()
  /** Servers whose restart waits for its turn. */
  readonly #restoring = new Set<Replica>()
  #queue: Promise<unknown> = Promise.resolve()

  constructor({ fleet, inFlight = 'drain', check, timeoutMs = 600_000 }: WeightUpdaterOptions) {
    this.#fleet = fleetParts(fleet)
    this.#inFlight = inFlight
    this.#check = check
    this.#timeoutMs = timeoutMs
    this.#fleet.onRestart = (replica) => {
      if (this.#restoring.has(replica)) return
      this.#restoring.add(replica)
      // A server that fails is left out, and an event reports it.
      void this.#inTurn(() => this.#restore(replica))
        .catch(() => {})
        .finally(() => this.#restoring.delete(replica))
    }
  }

  publish(publication: Publication, signal?: AbortSignal): Promise<PublishReport> {
    return this.#inTurn(() => this.#publishNow(publication, signal))
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(work)
    this.#queue = result.catch(() => {})
    return result
  }

  async #publishNow(publication: Publication, outer: AbortSignal | undefined): Promise<PublishReport> {
    const fleet = this.#fleet
    const { version, policy, directory } = publication
    const deadline = AbortSignal.timeout(this.#timeoutMs)
    const signal = outer ? AbortSignal.any([outer, deadline]) : deadline
    signal.throwIfAborted()
    this.#publications.assertNext(publication, fleet.weightVersion(policy))
    const startedAt = performance.now()
    // A server that does not answer is updated when it answers again.
    const targets = fleet.members.filter(({ health }) => health.healthy)
    if (targets.length === 0) throw new TrainError('POLICY_UNAVAILABLE', `No server could be updated to version ${version}: none is well.`)
    const mode = publication.inFlight ?? this.#inFlight
    fleet.hold()
    fleet.pauseProbes()
    let loaded: LoadResult[] = []
    try {
      if (mode === 'drain' && directory !== undefined) await fleet.drained(targets, signal)
      loaded = await Promise.all(targets.map((replica) => this.#update(replica, publication, mode, signal)))
      if (loaded.every(({ error }) => error !== null)) throw (loaded[0] as LoadResult).error
      this.#publications.add(publication)
      fleet.setPublished(version, policy)
      for (const replica of fleet.members) if (!targets.includes(replica)) fleet.setStale(replica, true)
      await this.#verify(loaded, publication, signal)
      for (const { replica, error } of loaded) {
        fleet.setStale(replica, error !== null)
        if (error) this.#publications.miss(replica)
      }
      const stale = loaded.find(({ error }) => error instanceof TrainError && error.code === 'POLICY_STALE_WEIGHTS')
      if (stale) throw stale.error
    } catch (cause) {
      outer?.throwIfAborted()
      if (deadline.aborted)
        throw new TrainError(
          'POLICY_UNAVAILABLE',
          `Version ${version} was not published within ${this.#timeoutMs} ms; look at the servers' logs.`,
          { cause },
        )
      throw cause
    } finally {
      fleet.resumeProbes()
      fleet.release()
    }
    return {
      version,
      policy,
      durationMs: performance.now() - startedAt,
      replicas: loaded.map(({ replica, error, difference }) => ({ server: replica.url, error, difference })),
    }
  }

  /** Loads the last publications into a server that restarted or missed an update. */
  async #restore(replica: Replica): Promise<void> {
    const missing = this.#publications.missing(replica)
    const last = missing.at(-1)
    if (!last) return
    const unknown = missing.find(({ directory }) => directory === undefined)
    if (unknown) {
      this.#publications.miss(replica)
      const message = `${replica.url} may not have version ${unknown.version}, which others brought to it; bring it there again and publish it.`
      return this.#report(replica, unknown, new TrainError('POLICY_STALE_WEIGHTS', message))
    }
    const signal = AbortSignal.timeout(this.#timeoutMs)
    this.#fleet.pauseProbes()
    try {
      const results: LoadResult[] = []
      for (const publication of missing) results.push(await this.#update(replica, publication, 'abort', signal))
      if (results.every(({ error }) => error === null)) await this.#verify(results.slice(-1), last, signal)
      if (results.every(({ error }) => error === null)) this.#fleet.setStale(replica, false)
      else this.#publications.miss(replica)
    } finally {
      this.#fleet.resumeProbes()
    }
  }

  async #update(replica: Replica, publication: Publication, mode: InFlightMode, signal: AbortSignal): Promise<LoadResult> {
    const loaded: LoadResult = { replica, error: null, difference: null }
    try {
      await bringWeights(this.#fleet, replica, publication, mode, signal)
    } catch (cause) {
      loaded.error = toTrainError(cause, 'POLICY_UNAVAILABLE')
    }
    this.#report(replica, publication, loaded.error)
    return loaded
  }

  #report({ url: server }: Replica, { version, policy }: Publication, error: Error | null): void {
    this.#fleet.emit(error ? { type: 'weights-failed', server, version, error } : { type: 'weights-published', server, version, policy })
  }

  /** Samples on every updated server and compares. A difference becomes the server's error. */
  async #verify(loaded: readonly LoadResult[], publication: Publication, signal: AbortSignal): Promise<void> {
    const check = this.#check
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
}
