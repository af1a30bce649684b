export type { AnswerDecoder as ChatStreamDecoder, ServerAnswer as ChatAnswer } from '../../server-answer.ts'
export { decodeChatAnswer } from './decode-answer.ts'
export { createChatStreamDecoder } from './decode-stream.ts'
export { type EncodeCallOptions, encodeChatCall } from './encode-call.ts'
