import type { Message } from '@aworld-train/core'
import { describe, expect, test } from 'vitest'
import type { ConversationOptions } from '../types.ts'
import { assistant, call, lookup, now, result, shape, turn, user } from './conversation.test-support.ts'

const end = '<|im_end|>'
const tools = [lookup]
const system = (content: string): Message => ({ role: 'system', content })

/** Records an answer, asks again with `history` and a result, and reports how the call was continued. */
async function ask(
  answer: Message,
  history: readonly Message[],
  options: Partial<ConversationOptions> & { before?: readonly Message[]; later?: readonly Message[] } = {},
) {
  const { before = [user('q')], later = before, ...settings } = options
  const model = await shape('chat-ml', 'as-sampled')
  const conversation = model.createConversation({ now, ...settings })
  turn(model, conversation, 0, before, { text: `sampled${end}`, message: answer, tools })
  const { parent, branchReasons, tolerated, promptTokenIds } = conversation.prepare({ messages: [...later, ...history], tools })
  return { parent, branchReasons, tolerated, text: model.decode(promptTokenIds) }
}

describe('an answer in several messages', () => {
  const both = assistant('Let me look.', { reasoning: 'Gold.', toolCalls: [call('c1'), call('c2')] })
  const results = [result('c1', '26'), result('c2', '79')]

  test.each<[string, Message[]]>([
    ['text, then calls', [assistant('Let me look.'), assistant(null, { toolCalls: [call('c1'), call('c2')] })]],
    [
      'reasoning, text and each call',
      [
        assistant('', { reasoning: 'Gold.' }),
        assistant('Let me look.'),
        assistant('', { toolCalls: [call('c1')] }),
        assistant('', { toolCalls: [call('c2')] }),
      ],
    ],
  ])('goes on as sampled: %s', async (_, messages) => {
    const next = await ask(both, [...messages, ...results])
    expect(next).toMatchObject({ parent: 0, tolerated: { 'split-message': 1 } })
    expect(next.text).toContain('sampled')
    expect(next.text).toContain('79')
  })

  test('that lacks a part, or has another, is another history', async () => {
    for (const messages of [
      [assistant('Let me look.'), assistant(null, { toolCalls: [call('c1')] })],
      [assistant('Let me see.'), assistant(null, { toolCalls: both.toolCalls! })],
    ])
      expect(await ask(both, [...messages, ...results])).toMatchObject({ parent: null, branchReasons: ['no-match'] })
  })
})

describe('reasoning in the text of an answer', () => {
  const answer = assistant('79.', { reasoning: 'It is gold.' })

  test.each(['<think>\nIt is gold.\n</think>\n\n79.', '<think>It is gold.</think>79.'])('goes on as sampled: %j', async (content) => {
    const next = await ask(answer, [assistant(content), user('And iron?')])
    expect(next).toMatchObject({ parent: 0, tolerated: { 'inline-reasoning': 1 } })
    expect(next.text).not.toContain('It is gold.')
  })

  test('in a message before its calls goes on as sampled too', async () => {
    const calls = assistant(null, { reasoning: 'It is gold.', toolCalls: [call('c1')] })
    const history = [assistant('<think>It is gold.</think>'), assistant(null, { toolCalls: [call('c1')] }), result('c1', '26')]
    expect(await ask(calls, history)).toMatchObject({ parent: 0, tolerated: { 'split-message': 1, 'inline-reasoning': 1 } })
  })

  test('is another history where it is not what was thought', async () => {
    expect(await ask(answer, [assistant('<think>It is lead.</think>79.'), user('x')])).toMatchObject({ parent: null })
    expect(await ask(assistant('79.'), [assistant('<think>It is lead.</think>79.'), user('x')])).toMatchObject({ parent: null })
  })
})

describe('text that is ignored', () => {
  const dated = (date: string) => [system(`Work well.\nToday is ${date}.\nBe brief.`), user('q')]
  const ignore = [/^Today is .*$/gm]
  const rest = [assistant('79.'), user('And iron?')]

  test("may change from call to call; the first call's stays in the prompt", async () => {
    const next = await ask(assistant('79.'), rest, { before: dated('Monday'), later: dated('Tuesday'), ignore })
    expect(next).toMatchObject({ parent: 0, tolerated: { ignored: 1 } })
    expect(next.text).toContain('Monday')
    expect(next.text).not.toContain('Tuesday')
  })

  test('is the named text alone, and nothing that the policy said', async () => {
    const changed = [system('Work well.\nToday is Tuesday.\nBe long.'), user('q')]
    expect(await ask(assistant('79.'), rest, { before: dated('Monday'), later: changed, ignore })).toMatchObject({ parent: null })
    expect(await ask(assistant('79.'), rest, { before: dated('Monday'), later: dated('Tuesday') })).toMatchObject({ parent: null })
    const answered = [assistant('79.\nToday is Tuesday.'), user('And iron?')]
    expect(await ask(assistant('79.\nToday is Monday.'), answered, { ignore })).toMatchObject({ parent: null })
  })
})
