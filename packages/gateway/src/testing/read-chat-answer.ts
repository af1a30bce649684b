import { type ReadAnswer, TrainError } from '@aworld-train/core'
import { createChatStreamDecoder, decodeChatAnswer } from '../dialects/chat-completions/client/index.ts'

/** Ends a stream that broke off. */
const ending = Buffer.from('data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n')

/** The bytes before an event that was cut or that is an error. */
function wholeEvents(body: Buffer): Buffer {
  const error = body.indexOf('data: {"error":')
  return body.subarray(0, error < 0 ? body.lastIndexOf(0x0a) + 1 : error)
}

/** Reads the answers of `startChatServer`. */
export const readAnswer: ReadAnswer = (body, stream, broken = null) => {
  const decoder = stream ? createChatStreamDecoder() : null
  const bytes = Buffer.from(body)
  const breaksOff = stream && broken !== null && !bytes.includes('"finish_reason":"')
  decoder?.push(breaksOff ? Buffer.concat([wholeEvents(bytes), ending]) : body)
  const { completion, promptTokenIds } = decoder ? decoder.finish().answer : decodeChatAnswer(Buffer.from(body).toString('utf8'))
  const { message, usage, tokenIds, logprobs } = completion
  const finishReason = breaksOff ? broken : completion.finishReason
  if (tokenIds.length === 0)
    throw new TrainError('POLICY_RESPONSE_INVALID', 'The answer has no token ids; start the server with return_token_ids.')
  return { promptTokenIds, completionTokenIds: tokenIds, rolloutLogprobs: logprobs, message, finishReason, usage }
}
