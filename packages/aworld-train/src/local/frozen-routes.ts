import { resolve } from 'node:path'
import type { FrozenRoute } from '@aworld-train/gateway'
import { TrainError } from '@aworld-train/protocol'
import type { FrozenModelSettings } from '@aworld-train/training'

/** Third parties of a configuration as the gateway knows them; relative files are found in `directory`. Throws CONFIG_INVALID. */
export function toFrozenRoutes(models: Readonly<Record<string, FrozenModelSettings>>, directory: string): Record<string, FrozenRoute> {
  const routes: Record<string, FrozenRoute> = {}
  for (const [name, { apiKeyEnv, price, maxInFlight, mode, cassette, ...settings }] of Object.entries(models)) {
    if (mode !== 'live' && cassette === null)
      throw new TrainError('CONFIG_INVALID', `models.${name}.mode is "${mode}" without a file of answers; set models.${name}.cassette.`)
    routes[name] = {
      ...settings,
      kind: 'frozen',
      ...(apiKeyEnv !== null && { apiKey: { env: apiKeyEnv } }),
      ...(price !== null && { price }),
      ...(maxInFlight !== null && { maxInFlight }),
      ...(mode !== 'live' && cassette !== null && { cassette: { path: resolve(directory, cassette), mode } }),
    }
  }
  return routes
}
