const lookUp = {
  type: 'function',
  function: {
    name: 'look_up',
    description: 'Looks an element up.',
    parameters: {
      type: 'object',
      properties: {
        name: { type: 'string', description: 'Its name' },
        count: { type: 'integer', default: 3 },
        mode: { type: 'string', enum: ['a', 'b c'] },
        list: { type: 'array', items: { type: 'string' } },
        maybe: { type: ['string', 'null'] },
      },
      required: ['name'],
      additionalProperties: false,
    },
  },
}
const now = { type: 'function', function: { name: 'now', description: 'The time.', parameters: { type: 'object', properties: {} } } }
const user = (content: string) => ({ role: 'user', content })
const assistant = (content: string) => ({ role: 'assistant', content })
const system = (content: string) => ({ role: 'system', content })

const call = (index: number, name: string, callArguments: object) => ({
  id: `abcdefgh${index}`,
  type: 'function',
  function: { name, arguments: callArguments },
})
/** For Mistral results are JSON: mistral-common writes what parses again from its value. */
const result = (index: number, name: string, content: string) => ({
  role: 'tool',
  tool_call_id: `abcdefgh${index}`,
  name,
  content,
})
const calls = (...tool_calls: readonly object[]) => ({ role: 'assistant', content: '', tool_calls })

export const mistralConversations = [
  { messages: [user('Hi')] },
  { messages: [user('  Ünïcödé 漢字 🙂 \n two')] },
  { messages: [user('Hi'), assistant('Hello'), user('Bye')] },
  { messages: [user('Hi')], tools: [lookUp, now] },
  { messages: [user('Hi'), assistant('Hello'), user('Look')], tools: [lookUp] },
  {
    messages: [user('Go'), calls(call(1, 'look_up', { name: 'é "q"', count: 2 })), result(1, 'look_up', '{"a": [1, 2.5, null]}')],
    tools: [lookUp],
  },
  {
    messages: [
      user('Both'),
      calls(call(1, 'now', {}), call(2, 'look_up', { name: 'iron' })),
      result(1, 'now', '12'),
      result(2, 'look_up', '26'),
      assistant('Done'),
      user('Again'),
      calls(call(3, 'now', {})),
      result(3, 'now', '13'),
    ],
    tools: [lookUp, now],
  },
]

export const harmonyConversations = [
  { messages: [user('Hi')] },
  { messages: [system('Be brief.'), user('Ünïcödé 漢字 🙂 \n two')] },
  { messages: [user('Hi'), assistant('Hello'), user('Bye')] },
  { messages: [user('Hi')], tools: [lookUp, now] },
  { messages: [system('Be brief.'), user('Hi')], tools: [now, lookUp] },
  {
    messages: [
      system('Be brief.'),
      user('Go'),
      { ...calls(call(1, 'look_up', { name: 'é "q"', count: 2 })), thinking: 'First iron.' },
      result(1, 'look_up', 'number 26, "Fe"'),
      { ...calls(call(2, 'now', {})), thinking: 'Now the time.' },
      result(2, 'now', '{"hour": 13}'),
    ],
    tools: [lookUp, now],
  },
  {
    messages: [
      user('Go'),
      { ...calls(call(1, 'now', {})), thinking: 'Dropped later.' },
      result(1, 'now', '12'),
      { ...assistant('Noon.'), thinking: 'Dropped too.' },
      user('Thanks'),
    ],
    tools: [now],
  },
]
