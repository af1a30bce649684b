import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { rowParser } from './syntax/rows.test-support.ts'

/** Turns every `<|…|>` of the text into a marker. */
const marked = (text: string): string => text.replaceAll(/<\|[a-z]+\|>/g, '\uE000$&\uE001')

const analysis = (text: string): string => `<|channel|>analysis<|message|>${text}<|end|><|start|>assistant`
const call = (header: string, body: string): string => `${header}<|message|>${body}<|call|>`
const toF = '<|channel|>commentary to=functions.f <|constrain|>json'

describe.each([
  ['tokens', true],
  ['text', false],
] as const)('markers as %s', (_, special) => {
  const read = async (text: string, options = {}) => (await rowParser('harmony', special)).parse(marked(text), options)

  test.each([
    ['final', '<|channel|>final<|message|>It is 26.<|return|>', { content: 'It is 26.' }],
    [
      'analysis, then final',
      `${analysis('Let me see.')}<|channel|>final<|message|>26<|return|>`,
      { content: '26', reasoning: 'Let me see.' },
    ],
    [
      'two analyses',
      `${analysis('One.')}${analysis('Two.')}<|channel|>final<|message|>3<|return|>`,
      { content: '3', reasoning: 'One.\n\nTwo.' },
    ],
    [
      'commentary to the user, then final',
      '<|channel|>commentary<|message|>I look.<|end|><|start|>assistant<|channel|>final<|message|>Done.<|return|>',
      { content: 'I look.\n\nDone.' },
    ],
    ['cut by nothing but the stop', '<|channel|>final<|message|>26', { content: '26' }],
    ['no message at all', '', { content: '' }],
    ['no channel', 'It is 26.', { content: 'It is 26.' }],
    ['an empty final', '<|channel|>final<|message|><|return|>', { content: '' }],
    ['an end left out', '<|channel|>analysis<|message|>Hm.<|channel|>final<|message|>26<|return|>', { content: '26', reasoning: 'Hm.' }],
    ['white space', '<|channel|>final<|message|>  26 \n<|return|>', { content: '  26 \n' }],
  ])('%s', async (_name, text, message) => {
    const found = await read(text)
    expect(found.message).toEqual({ role: 'assistant', ...message })
    expect({ issues: found.issues, finishReason: found.finishReason }).toEqual({ issues: [], finishReason: 'stop' })
  })

  test.each([
    ['the recipient behind the channel', call(toF, '{"a": 1}')],
    ['the recipient in the role', call(' to=functions.f<|channel|>commentary json', '{"a": 1}')],
    ['no constraint', call('<|channel|>commentary to=functions.f', '{"a": 1}')],
    ['the constraint without a space', call('<|channel|>commentary to=functions.f<|constrain|>json', '{"a": 1}')],
    ['in the channel of reasoning', call('<|channel|>analysis to=functions.f <|constrain|>json', '{"a": 1}')],
    ['line breaks', call(toF, '\n{"a": 1}\n')],
  ])('a call: %s', async (_name, text) => {
    const found = await read(analysis('Let me see.') + text)
    expect(found.message).toEqual({
      role: 'assistant',
      content: null,
      reasoning: 'Let me see.',
      toolCalls: [{ id: 'id0', name: 'f', arguments: '{"a": 1}' }],
    })
    expect({ issues: found.issues, finishReason: found.finishReason }).toEqual({ issues: [], finishReason: 'tool-calls' })
  })

  test.each(['', ' \n', 'null'])('a call whose arguments are %j has none', async (text) => {
    expect((await read(call(toF, text))).message.toolCalls).toMatchObject([{ name: 'f', arguments: '{}' }])
  })

  test('a tool outside of the namespace keeps its name', async () => {
    const found = await read(call('<|channel|>commentary to=browser.search <|constrain|>json', '{}'))
    expect(found.message.toolCalls).toMatchObject([{ name: 'browser.search' }])
  })

  test.each([
    ['arguments that are no JSON', call(toF, "{'a': 1}"), "{'a': 1}", 'call-invalid'],
    ['arguments that are a list', call(toF, '[1]'), '[1]', 'call-invalid'],
    ['the wrong end', `${toF}<|message|>{"a": 1}<|end|>`, '{"a": 1}', 'call-invalid'],
  ])('stays text: %s', async (_name, text, content, issue) => {
    const found = await read(text)
    expect(found.message).toEqual({ role: 'assistant', content })
    expect({ issues: found.issues, finishReason: found.finishReason }).toEqual({ issues: [issue], finishReason: 'stop' })
  })

  test('the end of a call may be missing at a real stop only', async () => {
    const text = `${toF}<|message|>{"a": 1}`
    expect(await read(text)).toMatchObject({ issues: ['close-missing'], finishReason: 'tool-calls' })
    expect(await read(text, { unified: 'length' })).toMatchObject({ issues: ['call-unclosed'], message: { content: '{"a": 1}' } })
  })

  test('a bad call does not swallow what follows', async () => {
    const found = await read(`${call(toF, '{bad}')}<|start|>assistant${call(toF, '{"a": 2}')}`)
    expect(found.message).toMatchObject({ content: '{bad}', toolCalls: [{ arguments: '{"a": 2}' }] })
  })

  test('a header that was cut is nobody’s text', async () => {
    for (const text of ['<|channel|>anal', '<|channel|>commentary to=func', `${analysis('Hm.').slice(0, -'assistant'.length)}ass`]) {
      expect((await read(text, { unified: 'length' })).message.content).toBe('')
    }
  })

  test('without tools nothing is a call', async () => {
    expect((await read(call(toF, '{"a": 1}'), { tools: [] })).message).toEqual({ role: 'assistant', content: '{"a": 1}' })
  })

  test('a stop string ends the final answer', async () => {
    const found = await read(`${analysis('STOP it')}<|channel|>final<|message|>one STOP two<|return|>`, { stop: ['P two'] })
    expect(found).toMatchObject({ message: { content: 'one STO', reasoning: 'STOP it' }, finishReason: 'stop' })
  })

  test('how the ids arrive makes no difference, and deltas are the message', async () => {
    const parser = await rowParser('harmony', special)
    const parts = fc.array(
      fc.constantFrom(
        '<|start|>',
        'assistant',
        '<|channel|>',
        'analysis',
        'final',
        'commentary',
        ' to=functions.f ',
        '<|constrain|>',
        'json',
        '<|message|>',
        '{"a": "',
        '"}',
        '{}',
        '<|call|>',
        '<|end|>',
        '<|return|>',
        ' \n',
        '<|',
        '漢🙂',
      ),
      { maxLength: 14 },
    )
    fc.assert(
      fc.property(
        parts,
        fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 5 }),
        fc.boolean(),
        (texts, pieces, stopped) => {
          const unified = stopped ? 'stop' : 'length'
          const text = marked(texts.join(''))
          const whole = parser.parse(text, { pieces: [10_000], unified })
          const cut = parser.parse(text, { pieces, unified })
          expect({ message: cut.message, issues: cut.issues }).toEqual({ message: whole.message, issues: whole.issues })
          const shown = (type: string) => cut.all.flatMap((delta) => (delta.type === type && 'text' in delta ? delta.text : [])).join('')
          expect([shown('content'), shown('reasoning')]).toEqual([cut.message.content ?? '', cut.message.reasoning ?? ''])
        },
      ),
      { numRuns: 200 },
    )
  })
})
