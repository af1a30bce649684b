import type { Message } from '@aworld-train/core'
import { expect, test } from 'vitest'
import type { ChatModel, PrepareRequest } from '../types.ts'
import { assistant, lookup, now, shape, turn, user } from './conversation.test-support.ts'

const bytesOf = (model: ChatModel, request: PrepareRequest) =>
  Buffer.byteLength(model.decode(model.createConversation({ now }).prepare(request).promptTokenIds))

const tooLong = (bytes: number) =>
  expect.objectContaining({
    code: 'POLICY_CONTEXT_OVERFLOW',
    details: { stopReason: 'context-overflow', param: 'messages' },
    message: expect.stringMatching(new RegExp(`a prompt may have ${bytes} \\(maxPromptBytes\\); shorten it, .* or raise maxPromptBytes`)),
  })

const think = (content: string): Message => assistant('a', { reasoning: content })

test('a prompt may have as many bytes of UTF-8 as are allowed, and not one more', async () => {
  const model = await shape('chat-ml')
  const requests: readonly PrepareRequest[] = [
    { messages: [user('plain')], tools: [] },
    { messages: [user('漢字 é 🙂'.repeat(20)), user('\ud800')], tools: [] },
    { messages: [user('q'), assistant('The answer 漢字')], tools: [] },
    { messages: [user('q')], tools: [lookup] },
  ]
  for (const request of requests) {
    const bytes = bytesOf(model, request)
    expect(model.createConversation({ now, maxPromptBytes: bytes }).prepare(request).promptTokenIds.length).toBeGreaterThan(0)
    expect(() => model.createConversation({ now, maxPromptBytes: bytes - 1 }).prepare(request)).toThrow(tooLong(bytes - 1))
  }
})

test('the whole of a continued prompt counts; a text that the template leaves out does not', async () => {
  const model = await shape('chat-ml')
  const conversation = model.createConversation({ now, maxPromptBytes: 400 })
  const first = [user('x'.repeat(200))]
  turn(model, conversation, 0, first, { text: 'a<|im_end|>', message: assistant('a') })
  const continued = (content: string) => conversation.prepare({ messages: [...first, assistant('a'), user(content)], tools: [] })
  expect(continued('y').parent).toBe(0)
  expect(() => continued('y'.repeat(200))).toThrow(tooLong(400))

  const dropping = await shape('think-dropping')
  const messages = [user('q'), think('hm '.repeat(500)), user('r')]
  expect(dropping.createConversation({ now, maxPromptBytes: 400 }).prepare({ messages, tools: [] }).parent).toBeNull()
})

test('tools that are too long are refused unread', async () => {
  const model = await shape('chat-ml')
  const conversation = model.createConversation({ now, maxPromptBytes: 400 })
  expect(() => conversation.prepare({ messages: [user('q')], tools: [lookup], toolsJson: '['.repeat(401) })).toThrow(tooLong(400))
})
