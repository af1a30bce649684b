import type { Dialect } from '../../call.ts'
import type { HttpFailure } from '../../failure.ts'
import { encodeFailure } from '../chat-completions/encode-response.ts'
import { openaiModels } from '../listed-models.ts'
import { decodeRequest } from './decode-request.ts'
import { encodeResponse } from './encode-response.ts'
import { createStream, encodeErrorEvent } from './encode-stream.ts'

/** Replaces the path of the conversation in errors of later stages by its name in this dialect. */
const inOwnWords = (failure: HttpFailure): HttpFailure => (failure.param === 'messages' ? { ...failure, param: 'input' } : failure)

/** OpenAI's Responses: https://platform.openai.com/docs/api-reference/responses */
export const responses: Dialect = {
  name: 'responses',
  path: '/responses',
  requestIdHeader: 'x-request-id',
  decode: decodeRequest,
  encode: encodeResponse,
  createStream,
  streamComment: ': waiting\n\n',
  encodeFailure: (failure) => encodeFailure(inOwnWords(failure)),
  encodeStreamFailure: (failure) => encodeErrorEvent(inOwnWords(failure), 0),
  ...openaiModels,
}
