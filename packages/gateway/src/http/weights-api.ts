import type { IncomingMessage, ServerResponse } from 'node:http'
import { TrainError, toTrainError, WeightPublication } from '@aworld-train/core'
import { badRequest, checkMethod } from '../failure.ts'
import type { ModelTable } from '../models/model-table.ts'
import type { AdminOptions } from '../options.ts'
import { readAdminBody } from './read-admin-body.ts'
import { weightsPath } from './routes.ts'
import { sendAdmin } from './send-admin.ts'
import { decodeName } from './send-models.ts'

/** Updates of weights over HTTP, for trainers that are other programs. */
export interface WeightsApi {
  /** Answers `POST /v1/models/{name}/weights` when the update has ended. Rejects with the error to send. */
  handle(path: string, request: IncomingMessage, response: ServerResponse): Promise<void>
  close(): void
}

export function createWeightsApi(weights: NonNullable<AdminOptions['weights']>, models: ModelTable): WeightsApi {
  const publishers = new Map(Object.entries(weights))
  const ended = new AbortController()

  /** Finds the updater of a model by the model's own name only. Through an alias for any name, a misspelt one would update a policy. */
  function publisherOf(name: string) {
    const publish = publishers.get(name)
    if (publish) return publish
    const able = Array.from(publishers.keys(), (each) => `"${each}"`).join(', ') || 'none'
    if (models.all.some((model) => model.name === name))
      throw badRequest(`The weights of model "${name}" cannot be updated here; those that can: ${able}.`, null, 404, 'not_found')
    const message = `There is no model "${name}" here; models whose weights can be updated: ${able}.`
    throw new TrainError('GATEWAY_MODEL_UNKNOWN', message)
  }

  return {
    async handle(path, request, response) {
      const publish = publisherOf(decodeName(weightsPath.exec(path)![1]!))
      checkMethod('/v1/models/{name}/weights', request.method, ['POST'])
      const publication = await readAdminBody({ request, response, schema: WeightPublication, what: 'The weights cannot be published.' })
      try {
        sendAdmin(response, 200, JSON.stringify(await publish(publication, ended.signal)))
      } catch (cause) {
        throw toTrainError(cause, 'POLICY_UNAVAILABLE')
      }
    },
    close: () => ended.abort(new TrainError('POLICY_UNAVAILABLE', 'The gateway was closed in the middle of the update.')),
  }
}
