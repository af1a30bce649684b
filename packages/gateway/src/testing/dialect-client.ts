import type { Message } from '@aworld-train/core'
import type { ModelCall } from '../call.ts'
import { createChatStreamDecoder, decodeChatAnswer, encodeChatCall } from '../dialects/chat-completions/client/index.ts'
import { createMessagesStreamDecoder, decodeMessagesAnswer, encodeMessagesCall } from '../dialects/messages/client/index.ts'
import type { AnswerDecoder, ServerAnswer } from '../dialects/server-answer.ts'

export type Body = Record<string, unknown>

/** The client's side of a dialect. */
export interface DialectClient {
  writeCall(call: ModelCall): Body
  /** The body of the next request, with the answer sent back as it came and the user's next message. */
  nextBody(body: Body, answer: Body, user: string): Body
  /** `tools` with one tool, `f`, whose schema is the text given. */
  toolsText(schema: string): string
  /** A body with a user's message of one part, as JSON text. */
  bodyWithPart(part: Body): Body
  readAnswer(json: string): ServerAnswer
  createDecoder(): AnswerDecoder
  /** The messages of a call as they arrive, without what the dialect cannot carry. */
  expected(messages: readonly Message[]): Message[]
}

const answerOf = (answer: Body): Body => answer

export const chatClient: DialectClient = {
  writeCall: (call) => ({
    ...JSON.parse(encodeChatCall(call, { model: call.model ?? '', maxTokens: call.maxTokens ?? undefined })),
    stream: call.stream,
  }),
  nextBody(body, answer, user) {
    const [choice] = answerOf(answer)['choices'] as { message: object }[]
    return { ...body, messages: [...(body['messages'] as object[]), choice!.message, { role: 'user', content: user }] }
  },
  toolsText: (schema) => `[{"type":"function","function":{"name":"f","parameters":${schema}}}]`,
  bodyWithPart: (part) => ({ messages: [{ role: 'user', content: [part] }] }),
  readAnswer: decodeChatAnswer,
  createDecoder: createChatStreamDecoder,
  expected: (messages) => [...messages],
}

/** Instructions come first, consecutive texts of a user are one, and reasoning stays where it was made. */
function asMessages(messages: readonly Message[]): Message[] {
  const system = messages.filter(({ role }) => role === 'system').map(({ content }) => content ?? '')
  const arrived: Message[] = system.length > 0 ? [{ role: 'system', content: system.join('') }] : []
  for (const { reasoning: _, ...message } of messages) {
    const last = arrived.at(-1)
    if (message.role === 'system') continue
    if (message.role === 'user' && last?.role === 'user') last.content += message.content ?? ''
    else arrived.push({ ...message })
  }
  return arrived
}

export const messagesClient: DialectClient = {
  writeCall: (call) => ({
    ...JSON.parse(encodeMessagesCall(call, { model: call.model ?? '', maxTokens: call.maxTokens ?? 1 })),
    stream: call.stream,
  }),
  nextBody(body, answer, user) {
    const { content } = answerOf(answer)
    const next = [
      { role: 'assistant', content },
      { role: 'user', content: user },
    ]
    return { ...body, messages: [...(body['messages'] as object[]), ...next] }
  },
  toolsText: (schema) => `[{"name":"f","input_schema":${schema}}]`,
  bodyWithPart: (part) => ({ messages: [{ role: 'user', content: [part] }], max_tokens: 1 }),
  readAnswer: decodeMessagesAnswer,
  createDecoder: createMessagesStreamDecoder,
  expected: asMessages,
}
