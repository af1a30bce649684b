import type { ScoringContext } from '../contracts/reward.ts'
import { TrainError } from '../protocol/errors.ts'
import { didYouMean } from '../text/suggest.ts'

/** What a reward has beside the episode, from the endpoints of the frozen models that it may ask. */
export const scoringContext = (signal: AbortSignal, endpoints: ScoringContext['endpoints'] = {}): ScoringContext => ({
  signal,
  endpoints,
  model(name) {
    if (!Object.hasOwn(endpoints, name)) throw unknownModel(name, Object.keys(endpoints))
    return endpoints[name]!
  },
})

/** The error of a reward that asks for a frozen model which is not there; `details.model` names it. */
export function unknownModel(name: string, names: readonly string[]): TrainError {
  const list = names.length === 0 ? 'there is none here' : `there are ${names.map((each) => `"${each}"`).join(', ')}`
  return new TrainError(
    'CONFIG_INVALID',
    `The reward asks for the frozen model "${name}", and ${list}.${didYouMean(name, names)} Correct the name, or add models.${name} to the configuration of the training.`,
    { details: { model: name } },
  )
}
