import type { Dialect } from '../../call.ts'
import { decodeRequest } from './decode-request.ts'
import { encodeModel, encodeModels } from './encode-models.ts'
import { encodeFailure, encodeResponse } from './encode-response.ts'
import { createStream, encodeStreamFailure, pingEvent } from './encode-stream.ts'

/** Anthropic's Messages, version 2023-06-01: https://docs.anthropic.com/en/api/messages */
export const messages: Dialect = {
  name: 'messages',
  path: '/messages',
  requestIdHeader: 'request-id',
  decode: decodeRequest,
  encode: encodeResponse,
  createStream,
  streamComment: pingEvent,
  encodeFailure,
  encodeStreamFailure,
  encodeModel,
  encodeModels,
}
