import type { ModelCall } from '../call.ts'
import { createChatStreamDecoder, decodeChatAnswer, encodeChatCall } from '../dialects/chat-completions/client/index.ts'
import { createMessagesStreamDecoder, decodeMessagesAnswer, encodeMessagesCall } from '../dialects/messages/client/index.ts'
import { createResponsesStreamDecoder, decodeResponsesAnswer } from '../dialects/responses/client/index.ts'
import type { AnswerDecoder, ServerAnswer } from '../dialects/server-answer.ts'
import type { FrozenRoute } from '../models/routes.ts'

/** An API that third parties speak: a row of the table. */
export interface FrozenApi {
  readonly path: string
  /** Headers that carry the key. */
  headers(key: string | undefined): Record<string, string>
  decode(json: string): ServerAnswer
  /** `keepsEntries` says that the client asks for logprobs. */
  createDecoder(keepsEntries: boolean): AnswerDecoder
  /** Writes a call of another dialect; absent if the API cannot be translated to. */
  readonly encode?: (call: ModelCall, model: string) => string
}

const bearer = (key: string | undefined): Record<string, string> => (key === undefined ? {} : { authorization: `Bearer ${key}` })

/** Limit of an answer if the agent names none and the API requires one. */
const messagesMaxTokens = 4096

export const frozenApis: Readonly<Record<FrozenRoute['dialect'], FrozenApi>> = {
  'chat-completions': {
    path: '/chat/completions',
    headers: bearer,
    decode: decodeChatAnswer,
    createDecoder: createChatStreamDecoder,
    encode: (call, model) => encodeChatCall(call, { model, ...(call.maxTokens !== null && { maxTokens: call.maxTokens }) }),
  },
  responses: { path: '/responses', headers: bearer, decode: decodeResponsesAnswer, createDecoder: createResponsesStreamDecoder },
  messages: {
    path: '/messages',
    headers: (key) => ({ 'anthropic-version': '2023-06-01', ...(key !== undefined && { 'x-api-key': key }) }),
    decode: decodeMessagesAnswer,
    createDecoder: createMessagesStreamDecoder,
    encode: (call, model) => encodeMessagesCall(call, { model, maxTokens: call.maxTokens ?? messagesMaxTokens }),
  },
}
