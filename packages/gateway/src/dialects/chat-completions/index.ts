import type { Dialect } from '../../call.ts'
import { openaiModels } from '../listed-models.ts'
import { decodeRequest } from './decode-request.ts'
import { encodeFailure, encodeResponse } from './encode-response.ts'
import { createStream, encodeStreamFailure } from './encode-stream.ts'

/** OpenAI's Chat Completions, with vLLM's `return_token_ids`: https://platform.openai.com/docs/api-reference/chat */
export const chatCompletions: Dialect = {
  name: 'chat-completions',
  path: '/chat/completions',
  requestIdHeader: 'x-request-id',
  decode: decodeRequest,
  encode: encodeResponse,
  createStream,
  streamComment: ': waiting\n\n',
  encodeFailure,
  encodeStreamFailure,
  ...openaiModels,
}
