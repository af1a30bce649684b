import type { Dialect } from '../../call.ts'
import { encodeFailure } from '../chat-completions/encode-response.ts'
import { decodeRequest } from './decode-request.ts'
import { encodeResponse } from './encode-response.ts'
import { createStream, encodeErrorEvent } from './encode-stream.ts'

/** OpenAI's Responses: https://platform.openai.com/docs/api-reference/responses */
export const responses: Dialect = {
  name: 'responses',
  path: '/responses',
  historyField: 'input',
  decode: decodeRequest,
  encode: encodeResponse,
  createStream,
  streamComment: ': waiting\n\n',
  encodeFailure,
  encodeStreamFailure: (failure) => encodeErrorEvent(failure, 0),
}
