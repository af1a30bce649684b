import { describeDialect } from '../testing/describe-dialect.ts'
import { chatClient, messagesClient } from '../testing/dialect-client.ts'
import { responsesClient } from '../testing/responses-client.ts'
import { chatCompletions } from './chat-completions/index.ts'
import { messages } from './messages/index.ts'
import { responses } from './responses/index.ts'

const user = { role: 'user', content: 'Hi.' }
const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }
const tool = { type: 'function', function: { name: 'f' } }
const flat = { type: 'function', name: 'f' }
const claudeTool = { name: 'f', input_schema: {} }
const openaiFailure = (error: object) => ({ error })
const inputFailure = (error: { param: string | null }) => ({ error: { ...error, param: 'input' } })

describeDialect({
  dialect: chatCompletions,
  client: chatClient,
  unreadable: [{ type: 'image_url', image_url: { url: 'x' } }, { type: 'input_audio' }, { type: 'file' }, { type: 'constructor' }],
  failureShape: openaiFailure,
  refused: [
    ['no body', null, 'body'],
    ['no messages', {}, 'messages'],
    ['none', { messages: [] }, 'messages'],
    ['a strange role', { messages: [{ role: 'function', content: '' }] }, 'messages[0].role'],
    ['two answers', { messages: [user], n: 2 }, 'n'],
    ['a part without type', { messages: [{ role: 'user', content: [{ text: 'a' }] }] }, 'messages[0].content[0].type'],
    ['a result without id', { messages: [user, { role: 'tool', content: '' }] }, 'messages[1].tool_call_id'],
    ['a strange call', { messages: [{ role: 'assistant', tool_calls: [{ ...call, type: 'mcp' }] }] }, 'messages[0].tool_calls[0].type'],
    ['a tool without a type', { messages: [user], tools: [{ function: { name: 'x' } }] }, 'tools[0].type'],
    [
      'a named tool that is none',
      { messages: [user], tools: [tool], tool_choice: { type: 'function', function: { name: 'g' } } },
      'tool_choice',
    ],
    [
      'an allowed tool that is none',
      {
        messages: [user],
        tools: [tool],
        tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'g' } }] } },
      },
      'tool_choice',
    ],
    ['a forced call of nothing', { messages: [user], tool_choice: 'required' }, 'tool_choice'],
    ['a choice of a strange kind', { messages: [user], tools: [tool], tool_choice: { type: 'mcp' } }, 'tool_choice.type'],
    ['parallel as text', { messages: [user], parallel_tool_calls: 'no' }, 'parallel_tool_calls'],
  ],
})

describeDialect({
  dialect: responses,
  client: responsesClient,
  unreadable: [{ type: 'input_image', image_url: 'x' }, { type: 'input_file' }, { type: 'input_audio' }, { type: 'constructor' }],
  failureShape: inputFailure,
  refused: [
    ['no body', [], 'body'],
    ['no input', {}, 'input'],
    ['none', { input: [] }, 'input'],
    ['a number', { input: 5 }, 'input'],
    ['a strange role', { input: [{ role: 'tool', content: '' }] }, 'input[0].role'],
    ['an answer in the background', { input: 'a', background: true }, 'background'],
    ['a conversation', { input: 'a', conversation: 'conv_1' }, 'conversation'],
    ['an unknown response', { input: 'a', previous_response_id: 'resp_1' }, 'previous_response_id'],
    ['an unknown item', { input: [{ type: 'item_reference', id: 'msg_1' }] }, 'input[0].id'],
    ['a call without id', { input: [{ type: 'function_call', name: 'f', arguments: '' }] }, 'input[0].call_id'],
    ['a result without id', { input: [{ type: 'function_call_output', output: '' }] }, 'input[0].call_id'],
    ['a tool without a type', { input: 'a', tools: [{ name: 'x' }] }, 'tools[0].type'],
    ['a named tool that is none', { input: 'a', tools: [flat], tool_choice: { type: 'function', name: 'g' } }, 'tool_choice'],
    ['a forced call of nothing', { input: 'a', tool_choice: 'required' }, 'tool_choice'],
    ['a hosted choice', { input: 'a', tools: [flat], tool_choice: { type: 'file_search' } }, 'tool_choice.type'],
    ['include as text', { input: 'a', include: 'all' }, 'include'],
    ['store as text', { input: 'a', store: 'no' }, 'store'],
  ],
})

describeDialect({
  dialect: messages,
  client: messagesClient,
  unreadable: [{ type: 'image', source: {} }, { type: 'document' }, { type: 'search_result' }, { type: 'constructor' }],
  failureShape: ({ type, message, code, param }, requestId) => ({
    type: 'error',
    error: { type, message, code, param, details: { error_code: code } },
    request_id: requestId,
  }),
  refused: [
    ['no body', 'null', 'body'],
    ['no messages', {}, 'messages'],
    ['none', { messages: [] }, 'messages'],
    ['a strange role', { messages: [{ role: 'tool', content: '' }] }, 'messages[0].role'],
    ['a block without type', { messages: [{ role: 'user', content: [{ text: 'a' }] }] }, 'messages[0].content[0].type'],
    ['a result without id', { messages: [{ role: 'user', content: [{ type: 'tool_result' }] }] }, 'messages[0].content[0].tool_use_id'],
    ['a call without id', { messages: [{ role: 'assistant', content: [{ type: 'tool_use', name: 'f' }] }] }, 'messages[0].content[0].id'],
    [
      'a call with text',
      { messages: [{ role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: 'x' }] }] },
      'messages[0].content[0].input',
    ],
    ['a tool without a name', { messages: [user], tools: [{ input_schema: {} }] }, 'tools[0].name'],
    ['a strange choice', { messages: [user], tools: [claudeTool], tool_choice: { type: 'constructor' } }, 'tool_choice.type'],
    ['a named tool that is none', { messages: [user], tools: [claudeTool], tool_choice: { type: 'tool', name: 'g' } }, 'tool_choice'],
    ['a forced call of nothing', { messages: [user], tool_choice: { type: 'any' } }, 'tool_choice'],
    ['stop as text', { messages: [user], stop_sequences: 'END' }, 'stop_sequences'],
  ],
})
