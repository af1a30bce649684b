import type { Message, ToolDefinition } from '@aworld-train/core'
import { describe, expect, test } from 'vitest'
import type { ShapeName } from '../template-shapes.test-support.ts'
import type { HistoryMode } from '../types.ts'
import { add, appended, assistant, call, chatMlLike, lookup, now, result, shape, turn, user } from './conversation.test-support.ts'

describe('what a client may do to a history', () => {
  const answered = async (change: (message: Message) => Message, recorded: Message, tools: readonly ToolDefinition[] = [lookup]) => {
    const model = await shape('chat-ml')
    const conversation = model.createConversation({ now })
    turn(model, conversation, 0, [user('q')], { text: 'anything<|im_end|>', message: recorded, tools })
    const after = recorded.toolCalls ? recorded.toolCalls.map(({ id }) => result(id, '1')) : [user('next')]
    return conversation.prepare({ messages: [user('q'), change(recorded), ...after], tools })
  }

  test('null, empty and white space around a text make no difference', async () => {
    const trimmed = await answered((message) => ({ ...message, content: 'yes' }), assistant('  yes\n'))
    expect(trimmed).toMatchObject({ parent: 0, tolerated: { 'white-space': 1 } })
    const empty = await answered((message) => ({ ...message, content: '' }), assistant(null, { toolCalls: [call('c1')] }))
    expect(empty).toMatchObject({ parent: 0, tolerated: { 'empty-content': 1 } })
  })

  test('our ids decide: stripped, reordered and defaulted arguments are counted', async () => {
    const recorded = assistant(null, { toolCalls: [call('c1', '{"name": "iron", "extra": 2.0}')] })
    const prepared = await answered((message) => ({ ...message, toolCalls: [call('c1', '{"name":"iron"}')] }), recorded)
    expect(prepared).toMatchObject({ parent: 0, tolerated: { arguments: 1 } })
  })

  test('without our ids the arguments must be equal as JSON', async () => {
    const recorded = assistant(null, { toolCalls: [call('c1', '{"a": 2.0, "b": [1]}')] })
    const same = await answered((message) => ({ ...message, toolCalls: [call('theirs', '{"b":[1],"a":2}')] }), recorded)
    expect(same).toMatchObject({ parent: 0, tolerated: { ids: 1, arguments: 1 } })
    const other = await answered((message) => ({ ...message, toolCalls: [call('theirs', '{"b":[1],"a":3}')] }), recorded)
    expect(other).toMatchObject({ parent: null, branchReasons: ['no-match'] })
  })

  test('another name, another number of calls or another text is another history', async () => {
    const recorded = assistant(null, { toolCalls: [call('c1')] })
    for (const toolCalls of [[call('c1', '{}', 'add')], [call('c1'), call('c2')], []]) {
      expect(await answered((message) => ({ ...message, toolCalls }), recorded)).toMatchObject({ branchReasons: ['no-match'] })
    }
    expect(await answered((message) => ({ ...message, content: 'no' }), assistant('yes'))).toMatchObject({ branchReasons: ['no-match'] })
  })

  test('reasoning that was not sent back is put back', async () => {
    const model = await shape('think-dropping')
    const conversation = model.createConversation({ now })
    const message = assistant(null, { reasoning: 'hm', toolCalls: [call('c1')] })
    const first = turn(model, conversation, 0, [user('q')], { text: 'sampled<|im_end|>', message, tools: [lookup] })
    const sent = assistant(null, { toolCalls: [call('c1')] })
    const second = conversation.prepare({ messages: [user('q'), sent, result('c1', '26')], tools: [lookup] })
    expect(second).toMatchObject({ parent: 0, tolerated: { reasoning: 1 } })
    expect(appended(model, second, first, 'sampled<|im_end|>')).toBe(
      '\n<|im_start|>user\n<tool_response>\n26\n</tool_response><|im_end|>\n<|im_start|>assistant\n',
    )
  })

  test('developer is system, and is rendered as system', async () => {
    const model = await shape('chat-ml')
    const conversation = model.createConversation({ now })
    const developer: Message = { role: 'developer', content: 'Be brief.' }
    const first = turn(model, conversation, 0, [{ ...developer, role: 'system' }, user('q')], {
      text: 'a<|im_end|>',
      message: assistant('a'),
    })
    expect(model.decode(first.promptTokenIds)).toContain('<|im_start|>system\nBe brief.')
    const second = conversation.prepare({ messages: [developer, user('q'), assistant('a'), user('r')], tools: [] })
    expect(second).toMatchObject({ parent: 0, tolerated: { role: 1 } })
  })

  test('results may come in another order, and may be missing before a user speaks', async () => {
    const model = await shape('chat-ml')
    const conversation = model.createConversation({ now })
    const message = assistant(null, { toolCalls: [call('c1'), call('c2')] })
    const first = turn(model, conversation, 0, [user('q')], { text: 'two<|im_end|>', message, tools: [lookup] })
    const swapped = conversation.prepare({ messages: [user('q'), message, result('c2', '2'), result('c1', '1')], tools: [lookup] })
    expect(appended(model, swapped, first, 'two<|im_end|>')).toBe(
      '\n<|im_start|>tool\n2<|im_end|>\n<|im_start|>tool\n1<|im_end|>\n<|im_start|>assistant\n',
    )
    const interrupted = conversation.prepare({ messages: [user('q'), message, user('stop')], tools: [lookup] })
    expect(interrupted).toMatchObject({ parent: 0, branchReasons: [], messagesDelta: [user('stop')] })
  })

  test('an edited system prompt or question is a history of its own, a repeated one goes on from the same turn', async () => {
    const model = await shape('chat-ml')
    const conversation = model.createConversation({ now })
    const history = [user('q'), assistant('a'), user('r')]
    turn(model, conversation, 0, [user('q')], { text: 'a<|im_end|>', message: assistant('a') })
    const first = turn(model, conversation, 1, history, { text: 'b<|im_end|>', message: assistant('b') })
    const again = turn(model, conversation, 2, history, { text: 'c<|im_end|>', message: assistant('c') })
    expect(first).toMatchObject({ parent: 0 })
    expect(again.promptTokenIds).toEqual(first.promptTokenIds)
    expect(conversation.prepare({ messages: [...history, assistant('c'), user('s')], tools: [] })).toMatchObject({ parent: 2 })
    expect(conversation.prepare({ messages: [user('Q'), ...history.slice(1)], tools: [] })).toMatchObject({
      parent: null,
      branchReasons: ['no-match'],
    })
    expect(conversation.prepare({ messages: [{ role: 'system', content: 's' }, ...history], tools: [] }).parent).toBeNull()
  })

  test('of two turns with the same text the ids of the calls decide', async () => {
    const model = await shape('chat-ml')
    const conversation = model.createConversation({ now })
    const messages = [user('q')]
    for (const [index, id] of ['first', 'second'].entries()) {
      turn(model, conversation, index, messages, {
        text: `${id}<|im_end|>`,
        message: assistant(null, { toolCalls: [call(id)] }),
        tools: [lookup],
      })
    }
    for (const [index, id] of ['first', 'second'].entries()) {
      const next = conversation.prepare({
        messages: [...messages, assistant(null, { toolCalls: [call(id)] }), result(id, '1')],
        tools: [lookup],
      })
      expect(next).toMatchObject({ parent: index, tolerated: {} })
    }
  })
})

describe('conversations with equal messages', () => {
  const question = [user('q')]
  const answered = [...question, assistant('a'), user('r')]
  const same = { text: 'a<|im_end|>', message: assistant('a') }

  test('each continues a turn that no other continues', async () => {
    const model = await shape('chat-ml')
    const conversation = model.createConversation({ now })
    for (const index of [0, 1, 2]) turn(model, conversation, index, question, same)
    const parents = [3, 4, 5].map((index) => turn(model, conversation, index, answered, same).parent)
    expect(parents.toSorted()).toEqual([0, 1, 2])
    expect(turn(model, conversation, 6, answered, same)).toMatchObject({ parent: 2 })
  })

  test('a turn whose continuation is being answered is left to it', async () => {
    const model = await shape('chat-ml')
    const conversation = model.createConversation({ now })
    for (const index of [0, 1]) turn(model, conversation, index, question, same)
    expect(conversation.prepare({ messages: answered, tools: [] })).toMatchObject({ parent: 1 })
    expect(conversation.prepare({ messages: answered, tools: [], isContinued: (index) => index === 1 })).toMatchObject({ parent: 0 })
  })

  test('a turn whose continuation nobody received is free again', async () => {
    const model = await shape('chat-ml')
    const conversation = model.createConversation({ now })
    for (const index of [0, 1]) turn(model, conversation, index, question, same)
    turn(model, conversation, 2, answered, same)
    const isAbandoned = (index: number) => index === 2
    expect(conversation.prepare({ messages: answered, tools: [], isAbandoned })).toMatchObject({ parent: 1 })
    expect(conversation.prepare({ messages: answered, tools: [] })).toMatchObject({ parent: 0 })
  })
})

describe('how a turn ended', () => {
  const next = async (
    text: string,
    message: Message,
    after: readonly Message[],
    truncated = true,
    tools: readonly ToolDefinition[] = [],
  ) => {
    const model = await shape('think-dropping', 'as-sampled')
    const conversation = model.createConversation({ now })
    const first = turn(model, conversation, 0, [user('q')], { text, message, truncated, tools })
    const second = conversation.prepare({ messages: [user('q'), message, ...after], tools })
    expect(second.branchReasons).toEqual([])
    return appended(model, second, first, text)
  }
  const question = '\n<|im_start|>user\nr<|im_end|>\n<|im_start|>assistant\n'

  test('the closer was sampled: only what follows it is added', async () => {
    expect(await next('a<|im_end|>', assistant('a'), [user('r')], false)).toBe(question)
  })

  test('cut in the text: the closer is added', async () => {
    expect(await next('abc', assistant('abc'), [user('r')])).toBe(`<|im_end|>${question}`)
  })

  test('cut in a call that was delivered as text: the closer is added', async () => {
    const text = '<tool_call>\n{"name": "loo'
    expect(await next(text, assistant(text), [user('r')])).toBe(`<|im_end|>${question}`)
  })

  test('cut behind a complete call: the closer is added, the call syntax is not', async () => {
    const text = '<tool_call>\n{"name": "lookup", "arguments": {"name": "iron"}}\n</tool_call>'
    const message = assistant(null, { toolCalls: [call('c1')] })
    expect(await next(text, message, [result('c1', '26')], true, [lookup])).toBe(
      '<|im_end|>\n<|im_start|>user\n<tool_response>\n26\n</tool_response><|im_end|>\n<|im_start|>assistant\n',
    )
  })

  test('an empty answer: the closer alone was sampled', async () => {
    expect(await next('<|im_end|>', assistant(''), [user('r')], false)).toBe(question)
  })

  test('another stop token stands in place of the closer', async () => {
    expect(await next('a<|endoftext|>', assistant('a'), [user('r')], false)).toBe(question)
  })

  test('cut inside reasoning that the template keeps: its closing tag is added', async () => {
    const template =
      "{%- for m in messages %}{{ '<|im_start|>' + m.role + '\\n' }}{% if m.reasoning_content %}{{ '<think>\\n' + m.reasoning_content + '\\n</think>\\n\\n' }}{% endif %}{{ m.content + '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
    const model = await chatMlLike(template)
    const conversation = model.createConversation({ now })
    const message = assistant('', { reasoning: 'hmm' })
    const first = turn(model, conversation, 0, [user('q')], { text: '<think>\nhmm', message, truncated: true })
    const second = conversation.prepare({ messages: [user('q'), message, user('r')], tools: [] })
    expect(appended(model, second, first, '<think>\nhmm')).toBe(
      '\n</think>\n\n<|im_end|>\n<|im_start|>user\nr<|im_end|>\n<|im_start|>assistant\n',
    )
  })

  test('a stop token that is the next header is not repeated', async () => {
    const model = await shape('next-header')
    const conversation = model.createConversation({ now })
    const message = assistant(null, { toolCalls: [call('c1')] })
    const text = '\n<tool_call>{"name": "lookup", "arguments": {"name": "iron"}}</tool_call><|observation|>'
    const first = turn(model, conversation, 0, [user('q')], { text, message, tools: [lookup] })
    const second = conversation.prepare({ messages: [user('q'), message, result('c1', '26')], tools: [lookup] })
    expect(appended(model, second, first, text)).toBe('\n<tool_response>\n26\n</tool_response><|assistant|>')
  })
})

describe('why a request branches', () => {
  const tail = "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
  const each = (body: string) =>
    `{%- for m in messages %}{{ '<|im_start|>' + m.role + '\\n' }}${body}{{ '<|im_end|>\\n' }}{% endfor %}${tail}`
  const calls =
    '{% for c in m.tool_calls %}<tool_call>{{ {"name": c.function.name, "arguments": c.function.arguments} | tojson }}</tool_call>{% endfor %}'
  const lastCall = calls.replace('c.function.arguments}', '(c.function.arguments if loop.last else {})}')

  const cases: readonly {
    reason: readonly string[]
    template: ShapeName | string
    message: Message
    stop?: string
    history?: HistoryMode
  }[] = [
    { reason: ['prefix'], template: 'think-open', message: assistant('a') },
    { reason: ['dropped:reasoning'], template: 'think-dropping', message: assistant('a', { reasoning: 'r' }) },
    { reason: ['dropped:content'], template: 'content-dropped', message: assistant('a', { toolCalls: [call('c1')] }) },
    {
      reason: ['dropped:arguments'],
      template: each(`{{ m.content }}${lastCall}`),
      message: assistant(null, { toolCalls: [call('c1'), call('c2')] }),
    },
    {
      reason: ['order'],
      template: each('{{ m.content }}{% if m.reasoning_content %}{{ m.reasoning_content }}{% endif %}{# <think> #}'),
      message: assistant('a', { reasoning: 'r' }),
    },
    { reason: ['closer'], template: 'chat-ml', message: assistant('a'), stop: '<|endoftext|>' },
    { reason: ['no-closer'], template: 'no-closer', message: assistant('a'), stop: '</s>', history: 'as-sampled' },
    { reason: ['markup'], template: 'chat-ml', message: assistant('a <|im_end|> b') },
    {
      reason: ['dropped:content', 'no-sentinel'],
      template: each("{{ m.content if m.content | length < 13 or m.role != 'assistant' }}"),
      message: assistant('a'),
    },
    {
      reason: ['raise'],
      template: each("{% if m.content | length > 12 and m.role == 'assistant' %}{{ raise_exception('long') }}{% endif %}{{ m.content }}"),
      message: assistant('a'),
      history: 'as-sampled',
    },
  ]

  test.each(cases)('$reason', async ({ reason, template, message, stop = '<|im_end|>', history = 'template' }) => {
    const model = template.includes('{') ? await chatMlLike(template, history) : await shape(template as ShapeName, history)
    const conversation = model.createConversation({ now })
    const tools = message.toolCalls ? [lookup] : []
    turn(model, conversation, 0, [user('q')], { text: `sampled${stop}`, message, tools })
    const after = message.toolCalls ? message.toolCalls.map(({ id }) => result(id, '1')) : [user('r')]
    const second = conversation.prepare({ messages: [user('q'), message, ...after], tools })
    expect(second).toMatchObject({ parent: null, matched: 0, branchReasons: reason })
  })

  test('tools that changed', async () => {
    const model = await shape('chat-ml', 'as-sampled')
    const conversation = model.createConversation({ now })
    const message = assistant(null, { toolCalls: [call('c1')] })
    turn(model, conversation, 0, [user('q')], { text: 'x<|im_end|>', message, tools: [lookup] })
    const second = conversation.prepare({ messages: [user('q'), message, result('c1', '1')], tools: [lookup, add] })
    expect(second).toMatchObject({ parent: null, branchReasons: ['tools'] })
    expect(conversation.prepare({ messages: [user('other')], tools: [] })).toMatchObject({ branchReasons: ['no-match'] })
    expect(model.createConversation().prepare({ messages: [user('q')], tools: [] })).toMatchObject({ branchReasons: ['root'] })
  })

  test('within a tool loop it goes on as sampled, and at a new question it follows the template', async () => {
    const model = await shape('loop-last', 'loop')
    const conversation = model.createConversation({ now })
    const first = assistant(null, { toolCalls: [call('c1')] })
    const second = assistant(null, { toolCalls: [call('c2')] })
    const loop = [user('q'), first, result('c1', '1'), second, result('c2', '2')]
    turn(model, conversation, 0, loop.slice(0, 1), { text: 'x<|im_end|>', message: first, tools: [lookup] })
    turn(model, conversation, 1, loop.slice(0, 3), { text: 'y<|im_end|>', message: second, tools: [lookup] })
    expect(turn(model, conversation, 2, loop, { text: 'z<|im_end|>', message: assistant('z'), tools: [lookup] })).toMatchObject({
      parent: 1,
      tolerated: { prefix: 1 },
    })
    const question = conversation.prepare({ messages: [...loop, assistant('z'), user('r')], tools: [lookup] })
    expect(question).toMatchObject({ parent: null, branchReasons: ['prefix'] })
  })
})

describe('what reaches the prompt', () => {
  test('a trailing assistant message begins the answer', async () => {
    const model = await shape('chat-ml')
    const conversation = model.createConversation({ now })
    const prepared = conversation.prepare({ messages: [user('q'), assistant('The answer')], tools: [] })
    expect(model.decode(prepared.promptTokenIds)).toBe('<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\nThe answer')
    expect(prepared.prefill).toEqual(assistant('The answer'))
    conversation.record(0, prepared, { tokenIds: model.encode(' is 4<|im_end|>'), message: assistant(' is 4'), truncated: false })
    const next = conversation.prepare({ messages: [user('q'), assistant('The answer is 4'), user('r'), assistant('So')], tools: [] })
    expect(next).toMatchObject({ parent: 0, branchReasons: [] })
    expect(model.decode(next.promptTokenIds)).toBe(
      '<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\nThe answer is 4<|im_end|>\n<|im_start|>user\nr<|im_end|>\n<|im_start|>assistant\nSo',
    )
  })

  test('a trailing assistant message keeps its reasoning, in a branch and in a continuation', async () => {
    const model = await shape('think-dropping', 'as-sampled')
    const conversation = model.createConversation({ now })
    const begun = assistant('The answer', { reasoning: 'hm' })
    const first = conversation.prepare({ messages: [user('q'), begun], tools: [] })
    const thought = '<|im_start|>assistant\n<think>\nhm\n</think>\n\n'
    expect(model.decode(first.promptTokenIds)).toBe(`<|im_start|>user\nq<|im_end|>\n${thought}The answer`)
    expect(first.messagesDelta).toEqual([user('q'), begun])
    conversation.record(0, first, { tokenIds: model.encode(' is 4<|im_end|>'), message: assistant(' is 4') })
    const whole = assistant('The answer is 4', { reasoning: 'hm' })
    const second = conversation.prepare({ messages: [user('q'), whole, user('r'), begun], tools: [] })
    expect(second).toMatchObject({ parent: 0, tolerated: { 'dropped:reasoning': 1 } })
    expect(model.decode(second.promptTokenIds)).toBe(
      `<|im_start|>user\nq<|im_end|>\n${thought}The answer is 4<|im_end|>\n<|im_start|>user\nr<|im_end|>\n${thought}The answer`,
    )
    conversation.record(1, second, { tokenIds: model.encode(' is 5<|im_end|>'), message: assistant(' is 5') })
    const third = conversation.prepare({ messages: [user('q'), whole, user('r'), assistant('The answer is 5'), user('s')], tools: [] })
    expect(third.parent).toBe(1)
  })

  test('a template that trims the text or cuts its reasoning off does so with a trailing assistant message', async () => {
    const source = (content: string) =>
      `{%- for m in messages %}{{ '<|im_start|>' + m.role + '\\n' }}{{ ${content} }}{{ '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}`
    const ending = async (content: string, prefill: Message) => {
      const model = await chatMlLike(source(content))
      const { promptTokenIds } = model.createConversation({ now }).prepare({ messages: [user('q'), prefill], tools: [] })
      return model.decode(promptTokenIds).split('assistant\n')[1]
    }
    expect(await ending('m.content | trim', assistant(' So \n'))).toBe('So')
    expect(await ending('m.content', assistant(' So \n'))).toBe(' So \n')
    expect(await ending("m.content.split('</think>')[-1]", assistant('So'))).toBe('So')
    await expect(ending("m.content.split('</think>')[-1]", assistant('hm</think>So'))).rejects.toThrow(
      /cannot continue a trailing assistant message/,
    )
  })

  test.each([
    ['{"9": 1E5, "1": 12345678901234567890, "9": 2.0}', '{"9": 2.0, "1": 12345678901234567890}'],
    ['{"a": -0, "b": -0.0, "c": 0.1000000000000000055511151231257827}', '{"a": 0, "b": -0.0, "c": 0.1}'],
    ['{"a": 1e400, "b": [-1e400, 1e-400]}', '{"a": Infinity, "b": [-Infinity, 0.0]}'],
    ['{"__proto__": {"": 1e-7}, "\\ud83d": "\\ude42"}', '{"__proto__": {"": 1e-07}, "\ufffd": "\ufffd"}'],
    ['{"a": NaN}', null],
    ['{"a": Infinity}', null],
    ['[1]', null],
  ])('arguments are printed as Python prints its reading of them: %s', async (written, printed) => {
    const model = await shape('chat-ml')
    const messages = [user('q'), assistant(null, { toolCalls: [call('c1', written)] }), result('c1', '26')]
    const prepare = () => model.createConversation({ now }).prepare({ messages, tools: [lookup] })
    if (printed === null) expect(prepare).toThrow(/arguments of the call c1 of lookup are not a JSON object/)
    else expect(model.decode(prepare().promptTokenIds)).toContain(`"arguments": ${printed}}`)
  })

  test('ids are those the template accepts, whatever the client was given', async () => {
    const model = await shape('tools-move')
    expect(model.probe).toMatchObject({ idForm: 'alphanumeric-9', idsInPrompt: true })
    const message = assistant(null, { toolCalls: [call('a-long-client-id')] })
    const conversation = model.createConversation({ now })
    const prepared = conversation.prepare({ messages: [user('q'), message, result('a-long-client-id', '26')], tools: [lookup] })
    expect(model.decode(prepared.promptTokenIds)).toContain('"id": "c00000000"}</tool_call></s>[TOOL]26#c00000000</s>')
  })

  test('ids that hold the name count through the whole conversation', async () => {
    const model = await chatMlLike(
      "{%- for m in messages %}{{ '<|im_start|>' + m.role + '\\n' }}{{ m.content }}{% for c in m.tool_calls %}{% set parts = c.id.split('.') %}{% if parts | length > 1 %}{{ '<tool_call>{\"name\": \"' + parts[1].split(':')[0] + '\", \"arguments\": ' + (c.function.arguments | tojson) + '}</tool_call>' + c.id }}{% endif %}{% endfor %}{{ '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
    )
    expect(model.probe).toMatchObject({ idForm: 'function-index', syntax: 'tagged-json' })
    const conversation = model.createConversation({ now })
    const messages: Message[] = [user('q')]
    for (const index of [0, 1, 2]) {
      const message = assistant(null, { toolCalls: [call(`c${index}`)] })
      const prepared = turn(model, conversation, index, [...messages], { text: 'x<|im_end|>', message, tools: [lookup] })
      expect(prepared.branchReasons).toEqual(index === 0 ? ['root'] : [])
      messages.push(message, result(`c${index}`, '1'))
    }
    const whole = model.createConversation({ now }).prepare({ messages, tools: [lookup] })
    expect(model.decode(whole.promptTokenIds).match(/functions\.lookup:\d/g)).toEqual(['0', '1', '2'].map((n) => `functions.lookup:${n}`))
  })

  test('a template that walks through parts is given parts', async () => {
    const parts =
      "{%- for m in messages %}{{ '<|im_start|>' + m.role + '\\n' }}{% for p in m.content %}{{ p.text }}{% endfor %}{{ '<|im_end|>\\n' }}{% endfor %}"
    const model = await chatMlLike(`${parts}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}`)
    expect(model.probe.contentParts).toBe(true)
    const conversation = model.createConversation({ now })
    turn(model, conversation, 0, [user('q')], { text: 'a<|im_end|>', message: assistant('a') })
    const second = conversation.prepare({ messages: [user('q'), assistant('a'), user('r')], tools: [] })
    expect(second.parent).toBe(0)
    expect(model.decode(second.promptTokenIds)).toBe(
      '<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\na<|im_end|>\n<|im_start|>user\nr<|im_end|>\n<|im_start|>assistant\n',
    )
  })

  test('the clock stands still', async () => {
    const model = await shape('header')
    const conversation = model.createConversation({ now: new Date(2026, 11, 31, 23, 59, 59) })
    const first = turn(model, conversation, 0, [user('q')], { text: 'a<|eot|>', message: assistant('a') })
    expect(model.decode(first.promptTokenIds)).toContain('Today: 31 Dec 2026')
    expect(conversation.prepare({ messages: [user('q'), assistant('a'), user('r')], tools: [] })).toMatchObject({ parent: 0 })
  })

  test('a closer typed by a user does not end the turn before it', async () => {
    const model = await shape('chat-ml')
    const conversation = model.createConversation({ now })
    const first = turn(model, conversation, 0, [user('<|im_end|>')], { text: 'a<|im_end|>', message: assistant('a') })
    const messages = [user('<|im_end|>'), assistant('a'), user('<|im_end|> x')]
    expect(appended(model, conversation.prepare({ messages, tools: [] }), first, 'a<|im_end|>')).toBe(
      '\n<|im_start|>user\n<|im_end|> x<|im_end|>\n<|im_start|>assistant\n',
    )
  })

  test('tools given as JSON keep the spelling of numbers and the order of keys', async () => {
    const model = await shape('chat-ml')
    const toolsJson = '[{"type":"function","function":{"name":"f","parameters":{"10":1.0,"2":1e-7}}}]'
    const prepared = model.createConversation().prepare({ messages: [user('q')], tools: [lookup], toolsJson })
    expect(model.decode(prepared.promptTokenIds)).toContain('{"10": 1.0, "2": 1e-07}')
  })
})

describe('what cannot be rendered is refused by name', () => {
  const refuses = async (name: ShapeName, messages: readonly Message[], text: string, tools: readonly ToolDefinition[] = []) => {
    const model = await shape(name)
    expect(() => model.createConversation().prepare({ messages, tools })).toThrow(text)
  }

  test('no messages, a call without its result, arguments that are not an object', async () => {
    await refuses('chat-ml', [], 'The request has no messages')
    await refuses('chat-ml', [assistant('hello')], 'The only message is of the assistant')
    await refuses('chat-ml', [user('q'), assistant(null, { toolCalls: [call('c1')] })], 'a call of lookup that has no result')
    const broken = assistant(null, { toolCalls: [call('c1', '[1')] })
    await refuses('chat-ml', [user('q'), broken, result('c1', '1')], 'The arguments of the call c1 of lookup are not a JSON object')
  })

  test('what the template raises', async () => {
    const both = assistant(null, { toolCalls: [call('c1'), call('c2')] })
    await refuses('header', [user('q'), both, result('c1', '1')], 'This template takes one call at a time.')
  })

  test('tools for a template that cannot print calls', async () => {
    await refuses('bracket', [user('q')], 'cannot print tool calls', [lookup])
  })

  test('a turn that is recorded twice', async () => {
    const model = await shape('chat-ml')
    const conversation = model.createConversation()
    turn(model, conversation, 0, [user('q')], { text: 'a<|im_end|>', message: assistant('a') })
    expect(() => turn(model, conversation, 0, [user('q')], { text: 'a<|im_end|>', message: assistant('a') })).toThrow('already recorded')
  })
})
