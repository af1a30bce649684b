export { createResponsesStreamDecoder, decodeResponsesAnswer } from './decode-answer.ts'
