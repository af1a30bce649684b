import { isDeepStrictEqual } from 'node:util'
import { TrainError, toTrainError, type WeightPublication, type WeightReport } from '@aworld-train/core'
import {
  createSglangFleet,
  createVllmFleet,
  createWeightUpdater,
  type Fleet,
  type PublishReport,
  type WeightUpdater,
} from '@aworld-train/engines/remote'
import { readSecret } from '@aworld-train/training'
import { RemoteLimits, type RemoteModel } from './serve-config.ts'

/** A fleet with the only updater of its weights. */
export interface SharedFleet {
  readonly fleet: Fleet
  readonly updater: WeightUpdater
}

/** Finds or opens the fleet of a model. */
export type FleetOf = (name: string, model: RemoteModel) => Promise<SharedFleet>

interface First extends SharedFleet {
  readonly name: string
  readonly settings: Settings
}

type Settings = Readonly<Record<'limits' | 'apiKey' | 'loadMethod', unknown>>

const settingsOf = (model: RemoteModel): Settings => ({
  limits: model.limits,
  apiKey: model.apiKey,
  loadMethod: model.kind === 'vllm' ? model.loadMethod : null,
})
const unset: readonly (readonly [keyof Settings, unknown])[] = [
  ['limits', RemoteLimits.parse({})],
  ['apiKey', null],
  ['loadMethod', 'sync_from_dir'],
]
const addressOf = ({ kind, urls }: RemoteModel) => `${kind} ${urls.map((url) => url.replace(/\/+$/, '')).join(' ')}`

/** Opens fleets. Models of the same servers share one, so that a limit counts for all of them and an update reaches each server once. */
export function createFleets(stack: AsyncDisposableStack, directory: string): FleetOf {
  const fleets = new Map<string, First>()

  function check(name: string, model: RemoteModel, first: First): void {
    const settings = settingsOf(model)
    for (const [key, value] of unset) {
      if (isDeepStrictEqual(settings[key], value) || isDeepStrictEqual(settings[key], first.settings[key])) continue
      const message = `models.${name}.${key} differs from that of models.${first.name}, which has the same servers; set it there alone.`
      throw new TrainError('CONFIG_INVALID', message)
    }
  }

  return async (name, model) => {
    const existing = fleets.get(addressOf(model))
    if (existing) {
      check(name, model, existing)
      return existing
    }
    const { urls, limits, apiKey } = model
    const options = {
      replicas: urls,
      ...limits,
      ...(apiKey !== null && { apiKey: readSecret(apiKey, `models.${name}.apiKey`, directory) }),
    }
    const created = model.kind === 'vllm' ? createVllmFleet({ ...options, loadMethod: model.loadMethod }) : createSglangFleet(options)
    const fleet = stack.adopt(await created, (each) => each.close())
    const first: First = { name, fleet, updater: createWeightUpdater({ fleet }), settings: settingsOf(model) }
    fleets.set(addressOf(model), first)
    return first
  }
}

/** A publication for the servers of `model`, or for its adapter if it is one. */
export async function publishTo(
  { updater }: SharedFleet,
  { name, policy }: { readonly name: string; readonly policy: string | null },
  publication: WeightPublication,
  signal: AbortSignal,
): Promise<WeightReport> {
  const { policy: adapter = policy ?? undefined } = publication
  if (policy !== null && adapter !== policy) {
    const message = `Model "${name}" is the adapter "${policy}", not "${adapter}"; leave "policy" out.`
    throw new TrainError('GATEWAY_BAD_REQUEST', message, { details: { param: 'policy' } })
  }
  return toWeightReport(await updater.publish({ ...publication, policy: adapter }, signal))
}

function toWeightReport({ version, policy, durationMs, replicas }: PublishReport): WeightReport {
  return {
    version,
    policy: policy ?? null,
    durationMs,
    replicas: replicas.map(({ server, difference, error }) => ({
      server,
      difference,
      error: error ? toTrainError(error, 'POLICY_UNAVAILABLE').toRecord() : null,
    })),
  }
}
