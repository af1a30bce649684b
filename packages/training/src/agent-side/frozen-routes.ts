import { access } from 'node:fs/promises'
import { resolve } from 'node:path'
import { TrainError } from '@aworld-train/core'
import type { FrozenRoute } from '@aworld-train/gateway'
import type { FrozenModelSettings } from '../config/frozen-model.ts'

/**
 * Converts the frozen models of a configuration to routes of the gateway. Relative files are found in `directory`. Throws CONFIG_INVALID.
 */
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

/**
 * Checks the recordings of frozen models. Throws CONFIG_INVALID where recorded answers are to be used and no file is named, and
 * FROZEN_REPLAY_MISSING where the file does not exist.
 */
export async function checkRecordings(models: Readonly<Record<string, FrozenModelSettings>>, directory: string): Promise<void> {
  for (const [name, { cassette }] of Object.entries(toFrozenRoutes(models, directory))) {
    if (cassette?.mode !== 'replay') continue
    await access(cassette.path).catch((cause: unknown) => {
      const message = `models.${name}.mode is "replay", and there are no recorded answers in ${cassette.path}; record the run first, with mode: record.`
      throw new TrainError('FROZEN_REPLAY_MISSING', message, { cause })
    })
  }
}
