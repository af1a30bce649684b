import { TrainError } from '@aworld-train/core'
import type { Replica } from '../fleet/replica.ts'
import type { InFlightMode } from '../fleet/server-kind.ts'

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

/** What was published last of each policy, for servers that restart or missed it, and which servers it cannot be brought to. */
export class Publications {
  /** By policy; the base weights are ''. */
  readonly #current = new Map<string, Publication>()
  /** Servers that the last publication did not reach. They are tried again with the next one. */
  readonly #failed = new Set<Replica>()

  /** Throws POLICY_VERSION_CONFLICT if `last`, which was published of this policy, is not before this publication. */
  assertNext({ version, policy, directory }: Publication, last: number): void {
    const passed = directory === undefined ? version < last : version <= last
    if (!passed || (policy !== undefined && !this.#current.has(policy))) return
    const message = `Version ${version} was to be published after ${last}; publish ascending versions.`
    throw new TrainError('POLICY_VERSION_CONFLICT', message, { details: { published: last } })
  }

  add(publication: Publication): void {
    this.#current.set(publication.policy ?? '', publication)
    this.#failed.clear()
  }

  /** Says that the publications could not be brought to a server. */
  miss(replica: Replica): void {
    this.#failed.add(replica)
  }

  /** The publications to bring to a server, in order. None if it has them, or if they failed there. */
  missing(replica: Replica): readonly Publication[] {
    return replica.stale && !this.#failed.has(replica) ? [...this.#current.values()] : []
  }
}
