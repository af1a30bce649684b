import type { Message, ToolDefinition } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { chatMlTemplate } from './chat-ml-template.ts'
import { loadChatModel } from './load-chat-model.ts'
import { writeModel } from './write-model.test-support.ts'

const lookup: ToolDefinition = {
  name: 'lookup',
  description: 'Looks an element up.',
  parameters: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'], additionalProperties: false },
}

const chatMl = () =>
  writeModel({ template: chatMlTemplate, special: ['<|endoftext|>', '<|im_start|>', '<|im_end|>'], eosToken: '<|im_end|>' })

test('an episode of calls is one growing sequence of tokens', async () => {
  await using folder = await chatMl()
  const stop = folder.idOf('<|im_end|>')
  const model = await loadChatModel({ directory: folder.directory, stopTokenIds: [stop] })
  const conversation = model.createConversation()
  const messages: Message[] = [
    { role: 'system', content: 'You answer questions about the chemical elements.' },
    { role: 'user', content: 'What is the atomic number of iron?' },
  ]
  const first = conversation.prepare({ messages, tools: [lookup] })
  expect(model.decode(first.promptTokenIds)).toMatchInlineSnapshot(`
    "<|im_start|>system
    You answer questions about the chemical elements.

    # Tools

    You may call one or more functions to assist with the user query.

    You are provided with function signatures within <tools></tools> XML tags:
    <tools>
    {"type": "function", "function": {"name": "lookup", "description": "Looks an element up.", "parameters": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"], "additionalProperties": false}}}
    </tools>

    For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
    <tool_call>
    {"name": <function-name>, "arguments": <args-json-object>}
    </tool_call><|im_end|>
    <|im_start|>user
    What is the atomic number of iron?<|im_end|>
    <|im_start|>assistant
    "
  `)
  const parser = model.createCompletionParser({ tools: [lookup], prompt: first, mintToolCallId: (index) => `call_x${index}` })
  const sampled = model.encode('<tool_call>\n{"name": "lookup", "arguments": {"name": "iron"}}\n</tool_call><|im_end|>')
  const deltas = Array.from(sampled).flatMap((id) => parser.push(Int32Array.of(id)))
  const { message, finishReason, issues } = parser.finish({ unified: 'stop' })
  expect({ deltas, message, finishReason, issues }).toMatchInlineSnapshot(`
    {
      "deltas": [
        {
          "call": {
            "arguments": "{"name": "iron"}",
            "id": "call_x0",
            "name": "lookup",
          },
          "index": 0,
          "type": "tool-call",
        },
      ],
      "finishReason": "tool-calls",
      "issues": [],
      "message": {
        "content": null,
        "role": "assistant",
        "toolCalls": [
          {
            "arguments": "{"name": "iron"}",
            "id": "call_x0",
            "name": "lookup",
          },
        ],
      },
    }
  `)
  conversation.record(0, first, { tokenIds: sampled, message, truncated: false })
  const second = conversation.prepare({
    messages: [...messages, message, { role: 'tool', content: '26', toolCallId: 'call_x0' }],
    tools: [lookup],
  })
  expect(second).toMatchObject({ parent: 0, branchReasons: [], tolerated: {} })
  expect(model.decode(second.promptTokenIds).slice(model.decode(first.promptTokenIds).length)).toMatchInlineSnapshot(`
    "<tool_call>
    {"name": "lookup", "arguments": {"name": "iron"}}
    </tool_call><|im_end|>
    <|im_start|>tool
    26<|im_end|>
    <|im_start|>assistant
    "
  `)
})
