import { type GenerateRequest, TrainError } from '@aworld-train/core'
import type { ModelConfig } from '../model-config.ts'

/** Throws POLICY_CONTEXT_OVERFLOW or GATEWAY_BAD_REQUEST for a call that cannot be sampled, before anything is drawn. */
export function checkRequest({ promptTokenIds: prompt, sampling }: GenerateRequest, { contextLength, vocabularySize }: ModelConfig): void {
  if (prompt.length === 0) throw new TrainError('GATEWAY_BAD_REQUEST', 'The prompt has no tokens; send at least one.')
  if (prompt.length >= contextLength) {
    const message = `The prompt has ${prompt.length} tokens and the context of the model ${contextLength}; shorten the conversation.`
    throw new TrainError('POLICY_CONTEXT_OVERFLOW', message, { details: { promptTokens: prompt.length, contextLength } })
  }
  for (const id of prompt) {
    if (id >= 0 && id < vocabularySize) continue
    const message = `The prompt holds the token id ${id} and the model has ids below ${vocabularySize}; encode it with the model's tokenizer.`
    throw new TrainError('GATEWAY_BAD_REQUEST', message)
  }
  if (!(sampling.maxTokens >= 1)) {
    throw new TrainError('GATEWAY_BAD_REQUEST', `maxTokens is ${sampling.maxTokens}; ask for at least one token.`)
  }
  if (!(Number.isFinite(sampling.temperature) && sampling.temperature >= 0)) {
    throw new TrainError('GATEWAY_BAD_REQUEST', `The temperature is ${sampling.temperature}; it must be a number from 0 up.`)
  }
}
