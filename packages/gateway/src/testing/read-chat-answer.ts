import type { ReadAnswer } from '@aworld-train/core'
import { TrainError } from '@aworld-train/protocol'
import { createChatStreamDecoder, decodeChatAnswer } from '../dialects/chat-completions/client/index.ts'

/** Reads the answers of `startChatServer`. */
export const readAnswer: ReadAnswer = (body, stream) => {
  const decoder = stream ? createChatStreamDecoder() : null
  decoder?.push(body)
  const { completion, promptTokenIds } = decoder ? decoder.finish().answer : decodeChatAnswer(Buffer.from(body).toString('utf8'))
  const { message, finishReason, usage, tokenIds, logprobs } = completion
  if (tokenIds.length === 0)
    throw new TrainError('POLICY_RESPONSE_INVALID', 'The answer has no token ids; start the server with return_token_ids.')
  return { promptTokenIds, completionTokenIds: tokenIds, rolloutLogprobs: logprobs, message, finishReason, usage }
}
