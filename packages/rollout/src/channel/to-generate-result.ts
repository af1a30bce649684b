import {
  type ChannelArrays,
  type ChannelFailure,
  type ChannelGenerated,
  type ErrorCode,
  errorCatalogue,
  type GenerateResult,
  type ModelDescription,
  TrainError,
} from '@aworld-train/core'
import type { ClientCall } from './submission-table.ts'

/** Converts a trainer client's answer to the result of its call. Throws POLICY_RESPONSE_INVALID. */
export function toGenerateResult(
  { request: { sampling }, submission: { key } }: Pick<ClientCall, 'request' | 'submission'>,
  { finish, minVersion, maxVersion }: Pick<ChannelGenerated, 'finish' | 'minVersion' | 'maxVersion'>,
  { ids, logprobs }: ChannelArrays,
  { vocabularySize, stopTokenIds }: Pick<ModelDescription, 'vocabularySize' | 'stopTokenIds'>,
): GenerateResult {
  const wrong = (what: string) =>
    new TrainError('POLICY_RESPONSE_INVALID', `The trainer's answer to a model call of rollout "${key}" ${what}; nothing of it is used.`)
  if (!(ids instanceof Int32Array) || !(logprobs instanceof Float32Array)) throw wrong('lacks its ids or logprobs')
  if (ids.length !== logprobs.length) throw wrong(`has ${ids.length} ids with ${logprobs.length} logprobs`)
  for (let index = 0; index < ids.length; index++) {
    if (ids[index]! < 0 || ids[index]! >= vocabularySize) {
      throw wrong(`has id ${ids[index]} at ${index}, beyond the vocabulary of ${vocabularySize}`)
    }
    if (!Number.isFinite(logprobs[index])) throw wrong(`has logprob ${logprobs[index]} at ${index}`)
  }
  if (maxVersion < minVersion) throw wrong(`was sampled by weights from ${minVersion} to ${maxVersion}`)
  if (finish !== 'aborted' && ids.length === 0) throw wrong('has no token')
  // Trainers also say "stop" for a completion that reached its limit.
  const stopped = stopTokenIds.includes(ids.at(-1) ?? -1)
  const full = ids.length >= sampling.maxTokens && !stopped && sampling.stop.length === 0
  const unified = finish === 'stop' && full ? 'length' : finish
  return {
    tokenIds: ids,
    logprobs,
    finishReason: { unified, raw: finish },
    weightVersions: ids.length === 0 ? [] : [{ fromToken: 0, version: minVersion }],
    ...(minVersion !== maxVersion && { mixedVersions: { lowest: minVersion, highest: maxVersion } }),
    cachedTokens: 0,
  }
}

/** The error of a trainer client as a TrainError: a code of the catalogue stays; another becomes POLICY_UNAVAILABLE where a retry may succeed, else POLICY_FAILED. */
export function toEngineError({ code, message, retryable }: ChannelFailure): TrainError {
  const ourCode = Object.hasOwn(errorCatalogue, code) ? (code as ErrorCode) : retryable ? 'POLICY_UNAVAILABLE' : 'POLICY_FAILED'
  return new TrainError(ourCode, ourCode === code ? message : `${code}: ${message}`, { details: { clientCode: code } })
}
