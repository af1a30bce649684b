import type { Message } from '@aworld-train/core'
import { describe, expect, test } from 'vitest'
import type { Conversation, HistoryMode, PreparedPrompt } from '../types.ts'
import { add, appended, assistant, call, chatMlLike, lookup, now, result, shape, turn, user } from './conversation.test-support.ts'

const tools = [lookup]
const end = '<|im_end|>'
const prompt = '<|im_start|>assistant\n'

/** The text that a continuation adds for one more message of a role. */
const next = (role: string, content: string) => `\n<|im_start|>${role}\n${content}${end}\n${prompt}`

/** Checks that a prompt begins with its parent's prompt and completion. */
function extendsTurn(prepared: PreparedPrompt, parent: PreparedPrompt, sampled: Int32Array): void {
  const before = [...parent.promptTokenIds, ...sampled]
  expect(Array.from(prepared.promptTokenIds.subarray(0, before.length))).toEqual(before)
}

describe('named cases: results and calls', () => {
  test('one of two parallel tool results sent first', async () => {
    const model = await shape('chat-ml')
    const conversation = model.createConversation({ now })
    const both = assistant(null, { toolCalls: [call('c1'), call('c2')] })
    const first = turn(model, conversation, 0, [user('q')], { text: `both${end}`, message: both, tools })
    const early = [user('q'), both, result('c1', '26')]
    const second = turn(model, conversation, 1, early, { text: `Wait.${end}`, message: assistant('Wait.'), tools })
    expect(appended(model, second, first, `both${end}`)).toBe(next('tool', '26'))
    const complete = conversation.prepare({ messages: [...early, result('c2', '79')], tools })
    expect(complete).toMatchObject({ parent: 0, branchReasons: [] })
    expect(appended(model, complete, first, `both${end}`)).toBe(`\n<|im_start|>tool\n26${end}${next('tool', '79')}`)
    const late = conversation.prepare({ messages: [...early, assistant('Wait.'), result('c2', '79')], tools })
    expect(late).toMatchObject({ parent: 1, branchReasons: [] })
    expect(appended(model, late, second, `Wait.${end}`)).toBe(next('tool', '79'))
  })

  test('results in another order than the calls', async () => {
    const model = await shape('tools-move', 'as-sampled')
    const conversation = model.createConversation({ now })
    const both = assistant(null, { toolCalls: [call('c1'), call('c2')] })
    const first = turn(model, conversation, 0, [user('q')], { text: 'both</s>', message: both, tools })
    const swapped = conversation.prepare({ messages: [user('q'), both, result('c2', '79'), result('c1', '26')], tools })
    expect(appended(model, swapped, first, 'both</s>')).toBe('[TOOL]79#c00000001</s>[TOOL]26#c00000000</s>[ASSISTANT]')
  })

  test('tools reordered between calls', async () => {
    const reasons: Record<HistoryMode, readonly string[]> = { template: ['tools-order'], loop: [], 'as-sampled': [] }
    for (const [history, branchReasons] of Object.entries(reasons)) {
      const model = await shape('chat-ml', history as HistoryMode)
      const conversation = model.createConversation({ now })
      const message = assistant(null, { toolCalls: [call('c1')] })
      turn(model, conversation, 0, [user('q')], { text: `x${end}`, message, tools: [lookup, add] })
      const messages = [user('q'), message, result('c1', '26')]
      const reordered = turn(model, conversation, 1, messages, { text: `y${end}`, message: assistant('y'), tools: [add, lookup] })
      expect(reordered.branchReasons).toEqual(branchReasons)
      expect(reordered.tolerated).toEqual(branchReasons.length === 0 ? { 'tools-order': 1 } : {})
      const text = model.decode(reordered.promptTokenIds)
      expect(text.indexOf('"lookup"') < text.indexOf('"add"')).toBe(branchReasons.length === 0)
    }
  })

  test('tools reordered at a new question', async () => {
    const model = await shape('chat-ml', 'loop')
    const conversation = model.createConversation({ now })
    turn(model, conversation, 0, [user('q')], { text: `x${end}`, message: assistant('x'), tools: [lookup, add] })
    const messages = [user('q'), assistant('x'), user('r')]
    expect(conversation.prepare({ messages, tools: [add, lookup] })).toMatchObject({ parent: null, branchReasons: ['tools-order'] })
  })

  test('tool arguments re-serialised', async () => {
    const model = await shape('chat-ml')
    const sent = ['{"b":2,"a":1}', '{"a": 1.0, "b": 2}', '{"a":1}', '{}', '']
    for (const text of sent) {
      const conversation = model.createConversation({ now })
      const message = assistant(null, { toolCalls: [call('c1', '{"a": 1, "b": 2.0, "unknown": null}')] })
      const first = turn(model, conversation, 0, [user('q')], { text: `x${end}`, message, tools })
      const changed = assistant(null, { toolCalls: [call('c1', text)] })
      const second = conversation.prepare({ messages: [user('q'), changed, result('c1', '26')], tools })
      expect(second).toMatchObject({ parent: 0, branchReasons: [], tolerated: { arguments: 1 } })
      extendsTurn(second, first, model.encode(`x${end}`))
    }
  })

  test('tool-call ids replaced, anew in every request', async () => {
    const model = await shape('tools-move', 'as-sampled')
    const conversation = model.createConversation({ now })
    const loop: Message[] = [user('q')]
    let parent: PreparedPrompt | undefined
    for (const index of [0, 1, 2]) {
      const renamed = loop.map((message): Message => {
        if (message.role === 'tool') return { ...message, toolCallId: `${message.toolCallId}-in-${index}` }
        if (!message.toolCalls) return message
        return { ...message, toolCalls: message.toolCalls.map((each) => ({ ...each, id: `${each.id}-in-${index}` })) }
      })
      const message = assistant(null, { toolCalls: [call(`ours-${index}`)] })
      const prepared = turn(model, conversation, index, renamed, { text: 'x</s>', message, tools })
      expect(prepared).toMatchObject({ parent: index === 0 ? null : index - 1 })
      if (parent) {
        expect(prepared.tolerated['ids']).toBe(2 * index - 1)
        expect(appended(model, prepared, parent, 'x</s>')).toBe(`[TOOL]26#c0000000${index - 1}</s>[ASSISTANT]`)
      }
      parent = prepared
      loop.push(message, result(`ours-${index}`, '26'))
    }
  })

  test('tool-call ids left out, and an id used again in every turn', async () => {
    const model = await shape('tools-move', 'as-sampled')
    for (const id of ['', 'call_0']) {
      const conversation = model.createConversation({ now })
      const both = assistant(null, { toolCalls: [call('ours-0'), call('ours-1')] })
      const unnamed = assistant(null, { toolCalls: [call(id), call(id)] })
      const first = turn(model, conversation, 0, [user('q')], { text: 'x</s>', message: both, tools })
      const again = assistant(null, { toolCalls: [call('ours-2')] })
      const messages = [user('q'), unnamed, result(id, 'a'), result(id, 'b')]
      const second = turn(model, conversation, 1, messages, { text: 'y</s>', message: again, tools })
      expect(appended(model, second, first, 'x</s>')).toBe('[TOOL]a#c00000000</s>[TOOL]b#c00000001</s>[ASSISTANT]')
      const third = conversation.prepare({ messages: [...messages, assistant(null, { toolCalls: [call(id)] }), result(id, 'c')], tools })
      expect(appended(model, third, second, 'y</s>')).toBe('[TOOL]c#c00000002</s>[ASSISTANT]')
    }
  })

  test('content equal to another turn’s content: the ids of the calls decide, before the arguments', async () => {
    const model = await shape('chat-ml')
    const conversation = model.createConversation({ now })
    for (const index of [0, 1]) {
      const message = assistant(null, { toolCalls: [call(`ours-${index}`)] })
      turn(model, conversation, index, [user('q')], { text: `x${index}${end}`, message, tools })
    }
    const answered = [user('q'), assistant(null, { toolCalls: [call('ours-1')] }), result('ours-1', '26')]
    turn(model, conversation, 2, [user('q'), assistant(null, { toolCalls: [call('ours-0')] }), result('ours-0', '26')], {
      text: `deeper${end}`,
      message: assistant('deeper'),
      tools,
    })
    const second = conversation.prepare({ messages: [...answered, assistant('deeper'), user('r')], tools })
    expect(second).toMatchObject({ parent: 1, branchReasons: [] })
  })

  test('an id that the model wrote stands in later prompts, another for the client', async () => {
    const model = await shape('tools-move', 'as-sampled')
    const conversation = model.createConversation({ now })
    const prepared = conversation.prepare({ messages: [user('q')], tools })
    const message = assistant(null, { toolCalls: [call('client-id')] })
    conversation.record(0, prepared, { tokenIds: model.encode('x</s>'), message, promptCallIds: ['aBcDeF123'] })
    const second = conversation.prepare({ messages: [user('q'), message, result('client-id', '26')], tools })
    expect(appended(model, second, prepared, 'x</s>')).toBe('[TOOL]26#aBcDeF123</s>[ASSISTANT]')
    const other = model.createConversation({ now }).prepare({ messages: [user('q'), message, result('client-id', '26')], tools })
    expect(model.decode(other.promptTokenIds)).toContain('[TOOL]26#c00000000</s>')
  })
})

describe('named cases: what happens between two calls', () => {
  test('midnight passing', async () => {
    const model = await shape('header')
    const late = new Date(2026, 11, 31, 23, 59, 59)
    const conversation = model.createConversation({ now: late })
    const first = turn(model, conversation, 0, [user('q')], { text: 'a<|eot|>', message: assistant('a') })
    late.setDate(late.getDate() + 1)
    const second = conversation.prepare({ messages: [user('q'), assistant('a'), user('r')], tools: [] })
    expect(second).toMatchObject({ parent: 0, branchReasons: [] })
    expect(model.decode(first.promptTokenIds)).toContain('Today: 31 Dec 2026')
    const other = model.createConversation({ now: late }).prepare({ messages: [user('q'), assistant('a'), user('r')], tools: [] })
    expect(model.decode(other.promptTokenIds)).toContain('Today: 01 Jan 2027')
  })

  test('an empty turn dropped by the client', async () => {
    const expected: Record<HistoryMode, object> = {
      template: { parent: null, branchReasons: ['empty-turn'] },
      loop: { parent: null, branchReasons: ['empty-turn'] },
      'as-sampled': { parent: 0, branchReasons: [], tolerated: { 'empty-turn': 1 } },
    }
    for (const [history, outcome] of Object.entries(expected)) {
      const model = await shape('chat-ml', history as HistoryMode)
      const conversation = model.createConversation({ now })
      const first = turn(model, conversation, 0, [user('q')], { text: end, message: assistant('') })
      const messages = [user('q'), user('Say something.')]
      const second = turn(model, conversation, 1, messages, { text: `a${end}`, message: assistant('a') })
      expect(second).toMatchObject(outcome)
      if (second.parent === 0) expect(appended(model, second, first, end)).toBe(next('user', 'Say something.'))
      else expect(model.decode(second.promptTokenIds)).toBe(`<|im_start|>user\nq${end}${next('user', 'Say something.')}`)
      expect(conversation.prepare({ messages: [...messages, assistant('a'), user('r')], tools: [] })).toMatchObject({ parent: 1 })
    }
  })

  test('an empty turn kept by the client, as null, empty or white space', async () => {
    const model = await shape('chat-ml')
    for (const content of [null, '', ' \n']) {
      const conversation = model.createConversation({ now })
      turn(model, conversation, 0, [user('q')], { text: end, message: assistant('') })
      const second = conversation.prepare({ messages: [user('q'), assistant(content), user('r')], tools: [] })
      expect(second).toMatchObject({ parent: 0, branchReasons: [] })
    }
  })

  test('a foreign assistant turn in between', async () => {
    const model = await shape('chat-ml')
    const conversation = model.createConversation({ now })
    const first = turn(model, conversation, 0, [user('q')], { text: `a${end}`, message: assistant('a') })
    const foreign = [user('q'), assistant('a'), user('r'), assistant('from another model'), user('s')]
    const second = turn(model, conversation, 1, foreign, { text: `b${end}`, message: assistant('b') })
    expect(appended(model, second, first, `a${end}`)).toBe(
      `\n<|im_start|>user\nr${end}\n<|im_start|>assistant\nfrom another model${end}${next('user', 's')}`,
    )
    const third = conversation.prepare({ messages: [...foreign, assistant('b'), user('t')], tools: [] })
    expect(appended(model, third, second, `b${end}`)).toBe(next('user', 't'))
    expect(third.messagesDelta).toEqual([user('t')])
  })

  test('white space trimmed from what the policy said', async () => {
    const model = await shape('chat-ml')
    const conversation = model.createConversation({ now })
    const first = turn(model, conversation, 0, [user('  q\n')], { text: ` a\n\n${end}`, message: assistant(' a\n\n') })
    const second = conversation.prepare({ messages: [user('  q\n'), assistant('a'), user(' r ')], tools: [] })
    expect(second).toMatchObject({ parent: 0, branchReasons: [], tolerated: { 'white-space': 1 } })
    expect(appended(model, second, first, ` a\n\n${end}`)).toBe(next('user', ' r '))
  })

  test('white space trimmed from what the policy was told: an edit like any other', async () => {
    const model = await shape('chat-ml', 'as-sampled')
    const prompts: readonly Message[] = [
      { role: 'system', content: 'Be brief. ' },
      user('  q\n'),
      assistant(' from another model '),
      assistant(null, { toolCalls: [call('c0')] }),
      result('c0', '26\n'),
    ]
    for (const [index, message] of prompts.entries()) {
      const conversation = model.createConversation({ now })
      turn(model, conversation, 0, prompts, { text: `a${end}`, message: assistant('a'), tools })
      const edited = prompts.with(index, { ...message, content: (message.content ?? ' ').trim() })
      const second = conversation.prepare({ messages: [...edited, assistant('a'), user('r')], tools })
      if (message.toolCalls) {
        expect(second).toMatchObject({ parent: 0, tolerated: { 'empty-content': 1 } })
        continue
      }
      expect(second).toMatchObject({ parent: null, matched: null, branchReasons: ['no-match'], tolerated: {} })
      expect(second.divergence).toMatchObject({ index, role: message.role })
    }
  })

  test('white space around a prefill and what followed it', async () => {
    const model = await shape('chat-ml')
    const conversation = model.createConversation({ now })
    const first = turn(model, conversation, 0, [user('q'), assistant(' The')], { text: ` end.\n${end}`, message: assistant(' end.\n') })
    const second = conversation.prepare({ messages: [user('q'), assistant('The end.'), user('r')], tools: [] })
    expect(second).toMatchObject({ parent: 0, branchReasons: [], tolerated: { 'white-space': 1 } })
    expect(appended(model, second, first, ` end.\n${end}`)).toBe(next('user', 'r'))
  })

  test('numbers of sampled arguments written anew: a branch shows them as the policy wrote them', async () => {
    const model = await shape('chat-ml')
    const written = '{"n": 12345678901234567890, "x": 2.0, "9": 1, "1": 2}'
    const anew = '{"1":2,"9":1,"n":12345678901234567000,"x":2}'
    const message = assistant(null, { toolCalls: [call('c1', written), call('c2', written)] })
    const conversation = model.createConversation({ now })
    turn(model, conversation, 0, [user('q')], { text: `x${end}`, message, tools })
    const sentBack = assistant(null, { toolCalls: [call('c1', anew), call('c2', '{"x":3}'), call('foreign', anew)] })
    const results = ['c1', 'c2', 'foreign'].map((id) => result(id, '26'))
    const other = conversation.prepare({ messages: [user('edited'), sentBack, ...results], tools })
    expect(other.branchReasons).toEqual(['no-match'])
    expect(other.messages[1]!.toolCalls!.map((each) => each.arguments)).toEqual([written, '{"x":3}', anew])
    const matched = conversation.prepare({ messages: [user('q'), message, ...results.slice(0, 2), sentBack, ...results], tools })
    expect(matched).toMatchObject({ parent: 0, tolerated: {} })
    expect(matched.messages[4]!.toolCalls!.map((each) => each.arguments)).toEqual([written, '{"x":3}', anew])
  })

  test('developer for system', async () => {
    const model = await shape('chat-ml', 'template')
    for (const [before, after] of [
      ['system', 'developer'],
      ['developer', 'system'],
    ] as const) {
      const conversation = model.createConversation({ now })
      const first = turn(model, conversation, 0, [{ role: before, content: 'Be brief.' }, user('q')], {
        text: `a${end}`,
        message: assistant('a'),
      })
      expect(model.decode(first.promptTokenIds)).toContain('<|im_start|>system\nBe brief.')
      const messages: Message[] = [{ role: after, content: 'Be brief.' }, user('q'), assistant('a'), user('r')]
      expect(conversation.prepare({ messages, tools: [] })).toMatchObject({ parent: 0, tolerated: { role: 1 } })
    }
  })

  test('a retried call whose first answer was lost: of equal turns the one that was received goes on', async () => {
    const model = await shape('chat-ml')
    for (const lost of [0, 1]) {
      const conversation = model.createConversation({ now })
      for (const index of [0, 1]) turn(model, conversation, index, [user('q')], { text: `${index}${end}`, message: assistant('same') })
      const messages = [user('q'), assistant('same'), user('r')]
      const second = conversation.prepare({ messages, tools: [], isAbandoned: (index) => index === lost })
      expect(second.parent).toBe(1 - lost)
    }
  })

  test('a timestamp in the system prompt: every call is a branch, and says which text differs', async () => {
    const model = await shape('chat-ml', 'as-sampled')
    const conversation = model.createConversation({ now })
    const at = (time: string): Message => ({ role: 'system', content: `You are a helpful agent. The time is ${time}. Be brief.` })
    turn(model, conversation, 0, [at('12:00:01'), user('q')], { text: `a${end}`, message: assistant('a') })
    const second = conversation.prepare({ messages: [at('12:00:07'), user('q'), assistant('a'), user('r')], tools: [] })
    expect(second).toMatchObject({ parent: null, branchReasons: ['no-match'] })
    expect(second.divergence).toEqual({
      index: 0,
      role: 'system',
      recorded: ' The time is 12:00:01. Be brief.',
      received: ' The time is 12:00:07. Be brief.',
    })
    expect(conversation.prepare({ messages: [at('13:00:00'), user('something else')], tools: [] }).divergence).toBeNull()
  })
})

describe('named cases: thinking removed at the next user turn', () => {
  const thought = assistant('a', { reasoning: 'hm' })
  const step = assistant(null, { reasoning: 'look', toolCalls: [call('c1')] })
  const sampled = `<think>\nhm\n</think>\n\na${end}`
  const play = async (history: HistoryMode, prepare: (conversation: Conversation, first: PreparedPrompt) => PreparedPrompt) => {
    const model = await shape('think-dropping', history)
    const conversation = model.createConversation({ now })
    const first = turn(model, conversation, 0, [user('q')], { text: sampled, message: thought })
    return { model, first, second: prepare(conversation, first) }
  }

  test.each(['template', 'loop'] as const)('history: %s begins a branch that shows the turn without thinking', async (history) => {
    const { model, second } = await play(history, (conversation) =>
      conversation.prepare({ messages: [user('q'), thought, user('r')], tools: [] }),
    )
    expect(second).toMatchObject({ parent: null, matched: 0, branchReasons: ['dropped:reasoning'] })
    expect(model.decode(second.promptTokenIds)).toBe(`<|im_start|>user\nq${end}\n<|im_start|>assistant\na${end}${next('user', 'r')}`)
  })

  test('history: as-sampled goes on from the thinking', async () => {
    const { model, first, second } = await play('as-sampled', (conversation) =>
      conversation.prepare({ messages: [user('q'), assistant('a'), user('r')], tools: [] }),
    )
    expect(second).toMatchObject({ parent: 0, branchReasons: [], tolerated: { reasoning: 1, 'dropped:reasoning': 1 } })
    expect(appended(model, second, first, sampled)).toBe(next('user', 'r'))
  })

  test.each([
    ['template', ['dropped:reasoning', 'prefix']],
    ['loop', ['dropped:reasoning', 'prefix']],
    ['as-sampled', []],
  ] as const)('history: %s after a tool loop', async (history, branchReasons) => {
    const model = await shape('think-dropping', history)
    const conversation = model.createConversation({ now })
    const loop = [user('q'), step, result('c1', '26')]
    turn(model, conversation, 0, loop.slice(0, 1), { text: `x${end}`, message: step, tools })
    const second = turn(model, conversation, 1, loop, { text: sampled, message: thought, tools })
    expect(second).toMatchObject({ parent: 0, branchReasons: [], tolerated: {} })
    const third = conversation.prepare({ messages: [...loop, thought, user('r')], tools })
    expect(third.branchReasons).toEqual(branchReasons)
    expect(third.parent).toBe(branchReasons.length === 0 ? 1 : null)
  })

  test('the model says before a run what that will cost', async () => {
    const notes = async (history: HistoryMode) => (await shape('think-dropping', history)).historyNotes
    for (const history of ['template', 'loop'] as const) {
      expect(await notes(history)).toEqual([
        'This template rewrites earlier turns at each new user message after reasoning (dropped:reasoning): 3 calls of one conversation then are 3 branches, each a training sample of its own. Set history to as-sampled to continue what was sampled instead.',
      ])
    }
    expect(await notes('as-sampled')).toEqual([])
    expect((await shape('chat-ml', 'template')).historyNotes).toEqual([])
  })

  test('a template that rewrites inside a tool loop is continued there, and follows at a new question', async () => {
    const rewriting = await chatMlLike(
      `{%- for m in messages %}{{ '<|im_start|>' + m.role + '\\n' }}{{ m.content }}{% for c in m.tool_calls %}<tool_call>{{ {"name": c.function.name, "arguments": c.function.arguments} | tojson }}</tool_call>{% endfor %}{{ '<|im_end|>\\n' }}{% if loop.last %}{{ '\\n' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}`,
      'loop',
    )
    expect(rewriting.historyNotes.join()).toContain('each new user message (prefix): 3 calls of one conversation then are 3 branches')
    expect(rewriting.historyNotes.join()).not.toContain('tool result')
  })
})
