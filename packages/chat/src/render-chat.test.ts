import { expect, test } from 'vitest'
import { chatMlTemplate } from './chat-ml-template.ts'
import { assistant, call, lookup, result, shape, user } from './continuity/conversation.test-support.ts'
import { renderChat } from './render-chat.ts'

test('a conversation reads as the model that has its template is asked with it', async () => {
  const messages = [user('What is the number of iron?'), assistant(null, { toolCalls: [call('c1')] }), result('c1', '26')]
  const chat = await shape('chat-ml')
  const { promptTokenIds } = chat.createConversation().prepare({ messages, tools: [lookup] })
  const text = renderChat({ chatTemplate: chatMlTemplate, messages, tools: [lookup] })
  expect(`${text}<|im_start|>assistant\n`).toBe(chat.decode(promptTokenIds))
})

test('what a template cannot render is said', () => {
  expect(() => renderChat({ chatTemplate: "{{ raise_exception('no') }}", messages: [user('q')] })).toThrow(
    expect.objectContaining({ code: 'GATEWAY_BAD_REQUEST', message: expect.stringContaining('no') }),
  )
})
