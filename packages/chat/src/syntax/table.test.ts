import type { ToolDefinition } from '@aworld-train/core'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { findSyntax } from './find-syntax.ts'
import { forcedPrefix } from './forced-prefix.ts'
import { type JsonObject, plain, rowNames, rowParser, type WrittenCall, writers } from './rows.test-support.ts'

const variants = rowNames.flatMap((name) => [[name, 'tokens'] as const, [name, 'text'] as const])

/** Tools whose schemas give the type of each argument. */
function toolsFor(calls: readonly WrittenCall[]): ToolDefinition[] {
  const typeOf = (value: unknown) => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value)
  return calls.map(({ name, arguments: args }) => ({
    name,
    parameters: {
      type: 'object',
      properties: Object.fromEntries(Object.entries(args).map(([key, value]) => [key, { type: typeOf(value) }])),
    },
  }))
}

const awkward: JsonObject = {
  quotes: `"double" 'single' \`back\``,
  tags: '<b>x</b> </tool> <parameter> & {{ }} [x](y) <think>',
  lines: 'one\ntwo\r\n\n  three\t',
  unicode: 'ünï 漢字 🙂 \u2028',
  escapes: 'C:\\dir\\n \\" \\u0041',
  digits: '007',
  words: 'null True None',
  json: '{"a": [1, "2"]}',
  empty: '',
  number: -1.5e-7,
  whole: 12,
  yes: true,
  no: false,
  nothing: null,
  nested: { list: [1, 'two', { three: [null, true] }], empty: {}, none: [] },
}

describe.each(variants)('%s, markers as %s', (row, as) => {
  test('arguments of every kind come back', async () => {
    const calls = [{ name: 'look_up', arguments: awkward }]
    const parser = await rowParser(row, as === 'tokens')
    const { message, issues, finishReason } = parser.parse(writers[row]!(calls), { tools: toolsFor(calls) })
    expect(issues).toEqual([])
    expect(finishReason).toBe('tool-calls')
    expect(message.content).toBeNull()
    expect(message.toolCalls?.map(({ name, arguments: args }) => ({ name, arguments: JSON.parse(args) }))).toEqual(calls)
  })

  test('several calls are several calls, one without arguments too', async () => {
    const calls = [
      { name: 'f', arguments: { a: 1 } },
      { name: 'g', arguments: {} },
      { name: 'f', arguments: { a: 'x' } },
    ]
    const { message, issues } = (await rowParser(row, as === 'tokens')).parse(writers[row]!(calls), { tools: toolsFor(calls.slice(2)) })
    expect(issues).toEqual([])
    expect(message.toolCalls?.map(({ id, name }) => [id, name])).toEqual([
      ['id0', 'f'],
      ['id1', 'g'],
      ['id2', 'f'],
    ])
    expect(message.toolCalls?.[1]?.arguments).toBe('{}')
  })

  test('text in front is content, unless the message as a whole is the call', async () => {
    const written = `Let me look. ${writers[row]!([{ name: 'f', arguments: {} }])}`
    const { message } = (await rowParser(row, as === 'tokens')).parse(written)
    const wholeMessage = ['pythonic', 'bare-json'].includes(row)
    if (row === 'harmony') return
    expect(message.content).toBe(wholeMessage ? plain(written) : 'Let me look.')
    expect(message.toolCalls?.length ?? 0).toBe(wholeMessage ? 0 : 1)
  })

  test('cut by length anywhere it never invents a call', async () => {
    const parser = await rowParser(row, as === 'tokens')
    const written = writers[row]!([{ name: 'f', arguments: { a: 'some text', b: { c: [1, 2] } } }])
    const ids = parser.encode(written).length
    for (let length = 0; length < Math.min(written.length, ids); length += 1) {
      const cut = [...written].slice(0, length).join('')
      const { message, finishReason } = parser.parse(
        cut.slice(0, cut.lastIndexOf('\uE000') > cut.lastIndexOf('\uE001') ? cut.lastIndexOf('\uE000') : length),
        {
          unified: 'length',
        },
      )
      expect(finishReason).toBe('length')
      for (const call of message.toolCalls ?? []) expect(JSON.parse(call.arguments)).toEqual({ a: 'some text', b: { c: [1, 2] } })
    }
  })

  test('a call the prompt has opened goes on', async () => {
    const parser = await rowParser(row, as === 'tokens')
    const whole = plain(writers[row]!([{ name: 'f', arguments: { a: 'b' } }]))
    for (const choice of [{ kind: 'required' }, { kind: 'named', name: 'f' }] as const) {
      const forced = forcedPrefix(parser.syntax, choice, null)!
      const compact = (text: string) => text.replaceAll(/\s|<\|constrain\|>json|"tool_call_id":"0",/g, '')
      expect(compact(whole)).toContain(compact(forced))
      const rest = whole.slice(restAfter(whole, forced))
      const marked = marks(rest, writers[row]!([{ name: 'f', arguments: { a: 'b' } }]))
      const { message, issues } = parser.parse(marked, { forced, tools: toolsFor([{ name: 'f', arguments: { a: 'b' } }]) })
      expect(issues).toEqual([])
      expect(message).toEqual({ role: 'assistant', content: null, toolCalls: [{ id: 'id0', name: 'f', arguments: expect.any(String) }] })
      expect(JSON.parse(message.toolCalls![0]!.arguments)).toEqual({ a: 'b' })
    }
  })

  const text = fc.string({ unit: 'grapheme', maxLength: 12 })
  const value: fc.Arbitrary<unknown> = fc.oneof<fc.Arbitrary<unknown>[]>(
    text,
    fc.constantFrom(
      '</tool_call>',
      '<tool_call>',
      '[TOOL_CALLS]',
      '```',
      '<|call|>',
      ')]',
      '}',
      '"',
      "'",
      '\\',
      '\n',
      '"""',
      ';',
      '<function=',
      '5',
    ),
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => (Object.is(number, -0) ? 0 : number)),
    fc.boolean(),
    fc.constant(null),
    fc.array(fc.oneof(text, fc.integer()), { maxLength: 3 }),
    fc.dictionary(fc.stringMatching(/^[a-z]{1,3}$/), fc.oneof(text, fc.boolean()), { maxKeys: 2 }),
  )
  const calls = fc.array(
    fc.record({
      name: fc.stringMatching(/^[a-z][a-z0-9_]{0,6}$/),
      arguments: fc.dictionary(fc.stringMatching(/^[a-z][a-z_]{0,4}$/), value, { maxKeys: 3 }),
    }),
    { minLength: 1, maxLength: 3 },
  )

  test('what it writes is read back, however the ids arrive', async () => {
    const parser = await rowParser(row, as === 'tokens')
    fc.assert(
      fc.property(calls, fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 4 }), (written, pieces) => {
        const distinct = written.map((call, index) => ({ ...call, name: `${call.name}${index}` }))
        const { message, issues } = parser.parse(writers[row]!(distinct), { pieces, tools: toolsFor(distinct) })
        expect(message.toolCalls?.map(({ name, arguments: args }) => ({ name, arguments: JSON.parse(args) }))).toEqual(
          distinct.map((call) => ({ ...call, arguments: { ...call.arguments } })),
        )
        expect(issues).toEqual([])
      }),
      { numRuns: 40 },
    )
  })
})

function restAfter(whole: string, forced: string): number {
  const needed = forced.replaceAll(/\s/g, '').length
  let seen = 0
  let at = 0
  for (; seen < needed; at += 1) if (!/\s/.test(whole[at]!)) seen += 1
  return at
}

/** The end of `written` that spells `rest`, with its markers. */
function marks(rest: string, written: string): string {
  let at = written.length
  for (let left = rest.length; left > 0; ) {
    at -= 1
    if (written[at] !== '\uE000' && written[at] !== '\uE001') left -= 1
  }
  while (at > 0 && written[at - 1] === '\uE000') at -= 1
  return written.slice(at)
}

test.each(rowNames)('the probe finds the row that a template prints: %s', (row) => {
  const name = 'pRoBeTool'
  const written = plain(writers[row]!([{ name, arguments: { key: 'pRoBeWord' } }]))
  const inTurn = row === 'harmony' ? `<|end|><|start|>assistant${written.slice(0, -'<|call|>'.length)}` : `<|turn|>assistant\n${written}`
  const stop = row === 'harmony' ? '<|call|>' : '<|end_of_turn|>'
  expect(findSyntax({ text: inTurn, stop, name, argument: 'pRoBeWord', tools: [{ name, parameters: {} }] })).toBe(row)
})

test('a way of writing that is not in the table is not taken for another', () => {
  const printed = { stop: '<|end|>', name: 'f', argument: 'word', tools: [] }
  for (const text of [
    '<call>{"name": "f", "arguments": {"key": "word"}}</call>',
    'Action: f\nInput: {"key": "word"}',
    '<f>word</f>',
    'f(key="word")',
  ]) {
    expect(findSyntax({ ...printed, text: `<|turn|>assistant\n${text}` })).toBeNull()
  }
})
