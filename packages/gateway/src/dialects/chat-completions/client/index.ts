export { type ChatAnswer, decodeChatAnswer } from './decode-answer.ts'
export { type ChatStreamDecoder, createChatStreamDecoder } from './decode-stream.ts'
export { type EncodeCallOptions, encodeChatCall } from './encode-call.ts'
