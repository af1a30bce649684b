export { createMessagesStreamDecoder, decodeMessagesAnswer } from './decode-answer.ts'
export { type EncodeMessagesCallOptions, encodeMessagesCall } from './encode-call.ts'
