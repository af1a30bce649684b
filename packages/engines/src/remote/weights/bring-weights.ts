import { TrainError } from '@aworld-train/core'
import type { FleetParts } from '../fleet/fleet-types.ts'
import { type Replica, setVersion } from '../fleet/replica.ts'
import type { InFlightMode, ServerKind } from '../fleet/server-kind.ts'
import type { Publication } from './publications.ts'

type Marks = Pick<FleetParts, 'setStale'> & { readonly kind: ServerKind }

/** Whether the server reported that it did not load. After any other failure its weights are unknown. */
const wasRefused = (error: unknown): boolean =>
  error instanceof TrainError && typeof error.details?.['status'] === 'number' && error.details['status'] < 500

/** Brings a publication to one server. A server whose weights are unknown after a failure is marked stale. */
export async function bringWeights(
  fleet: Marks,
  replica: Replica,
  publication: Publication,
  mode: InFlightMode,
  signal: AbortSignal,
): Promise<void> {
  const { kind } = fleet
  const { version, directory, policy } = publication
  if (directory === undefined) return await take(fleet, replica, publication, signal)
  await kind.pause(replica.admin, mode, signal)
  try {
    if (policy === undefined) {
      await kind.loadWeights(replica.admin, { directory, label: String(version) }, signal)
      replica.label = replica.label === null ? null : String(version)
    } else await kind.loadAdapter(replica.admin, { name: policy, directory }, signal)
    setVersion(replica, version, policy)
  } catch (cause) {
    if (!wasRefused(cause)) fleet.setStale(replica, true)
    throw cause
  } finally {
    // A server that stayed paused would serve no more calls, so it is resumed even if the update was abandoned.
    await kind.resume(replica.admin, AbortSignal.timeout(30_000))
  }
}

/** Counts the weights that a server has already as `version`. */
async function take(fleet: Marks, replica: Replica, { version, policy }: Publication, signal: AbortSignal): Promise<void> {
  // This happens before the server gets the name. Until then its answers name the version before, and a call's range allows both.
  setVersion(replica, version, policy)
  if (policy !== undefined) return
  try {
    await fleet.kind.nameWeights(replica.admin, String(version), signal)
  } catch (cause) {
    fleet.setStale(replica, true)
    throw cause
  }
  replica.label = replica.label === null ? null : String(version)
}
