import type { LogprobKind, ModelDescription } from '@aworld-train/core'
import { createFleet } from '../fleet/fleet.ts'
import type { Fleet, FleetOptions } from '../fleet/fleet-types.ts'
import type { ServerKind } from '../fleet/server-kind.ts'

/** Servers for this engine alone, or a fleet that several engines share and that its creator closes. */
export type FleetSource = FleetOptions | { readonly fleet: Fleet }

export type TokenEngineOptions = FleetSource & {
  readonly model: ModelDescription
  /** The servers' name of the model. Default: that of `model`. */
  readonly served?: string | undefined
  /** Tokens in one piece of a completion, if the server has such a setting. Default 8. */
  readonly streamInterval?: number | undefined
}

export type ChatEngineOptions = FleetSource & {
  readonly model: { readonly name: string; readonly contextLength: number }
  /** The servers' name of the model. Default: for vLLM that of the policy, else that of `model`. */
  readonly served?: string | undefined
  /** Name of the adapter that is sampled and whose versions are counted. Absent for the base weights. */
  readonly policy?: string | undefined
  /** Kind of logprob that the servers are set to report. Default `temperature`. */
  readonly logprobs?: LogprobKind | undefined
}

export async function takeFleet(kind: ServerKind, source: FleetSource): Promise<{ fleet: Fleet; ownsFleet: boolean }> {
  if ('fleet' in source) return { fleet: source.fleet, ownsFleet: false }
  return { fleet: await createFleet(kind, source), ownsFleet: true }
}
