import { describe, expect, test } from 'vitest'
import { plain, rowNames, rowParser, writers } from './rows.test-support.ts'

const good: Readonly<Record<string, string>> = Object.fromEntries(
  rowNames.map((row) => [row, plain(writers[row]!([{ name: 'g', arguments: { k: 'v' } }]))]),
)

interface Case {
  readonly row: string
  readonly what: string
  readonly text: string
  readonly issues?: readonly string[]
}

const invalid = (row: string, what: string, text: string, issues: readonly string[] = ['call-invalid']): Case => ({
  row,
  what,
  text,
  issues,
})
const tag = (body: string): string => `<tool_call>${body}</tool_call>`
const xml = (body: string): string => tag(`\n<function=f>\n${body}</function>\n`)
const deepSeek = (body: string): string => `<｜tool▁call▁begin｜>${body}<｜tool▁call▁end｜>`
const kimi = (body: string): string => `<|tool_call_begin|>${body}<|tool_call_end|>`
const gemma = (body: string): string => `<|tool_call>${body}<tool_call|>`
const lfm = (body: string): string => `<|tool_call_start|>${body}<|tool_call_end|>`

/** Outputs that look like calls but are none, and stay text word for word. */
const malformed: readonly Case[] = [
  invalid('tagged-json', 'single quotes', tag("{'name': 'f', 'arguments': {}}")),
  invalid('tagged-json', 'Python literals', tag('{"name": "f", "arguments": {"a": True, "b": None}}')),
  invalid('tagged-json', 'a raw newline in a string', tag('{"name": "f", "arguments": {"a": "x\ny"}}')),
  invalid('tagged-json', 'one brace too many', tag('{"name": "f", "arguments": {}}}')),
  invalid('tagged-json', 'one brace too few', tag('{"name": "f", "arguments": {}')),
  invalid('tagged-json', 'two objects in one tag', tag('{"name": "f", "arguments": {}}\n{"name": "f", "arguments": {}}')),
  invalid('tagged-json', 'a trailing comma', tag('{"name": "f", "arguments": {"a": 1,}}')),
  invalid('tagged-json', 'a comment', tag('{"name": "f", "arguments": {} /* none */}')),
  invalid('tagged-json', 'words in front of the object', tag('call: {"name": "f", "arguments": {}}')),
  invalid('tagged-json', 'a fence', tag('```json\n{"name": "f", "arguments": {}}\n```')),
  invalid('tagged-json', 'a list', tag('[{"name": "f", "arguments": {}}]')),
  invalid('tagged-json', 'nothing', tag('')),
  invalid('tagged-json', 'arguments as text that is no JSON', tag('{"name": "f", "arguments": "a=1"}')),
  invalid('tagged-json', 'a missing opening tag', '{"name": "f", "arguments": {}}</tool_call>', ['open-missing']),
  invalid('tagged-json', 'a closing tag instead of the opening one', '</tool_call>{"name": "f", "arguments": {}}', ['open-missing']),
  invalid('tagged-json', 'a tag that was misspelt', '<toolcall>{"name": "f", "arguments": {}}</toolcall>', []),
  invalid('tagged-json', 'half an object at the end', '<tool_call>{"name": "f", "argum', ['call-unclosed']),
  invalid('xml-parameters', 'a missing opening tag', '<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>', [
    'open-missing',
  ]),
  invalid('xml-parameters', 'an unclosed parameter', xml('<parameter=a>\n1\n')),
  invalid('xml-parameters', 'an unclosed function', tag('\n<function=f>\n<parameter=a>\n1\n</parameter>\n')),
  invalid('xml-parameters', 'words between parameters', xml('and\n<parameter=a>\n1\n</parameter>\n')),
  invalid('xml-parameters', 'the same parameter twice', xml('<parameter=a>\n1\n</parameter>\n<parameter=a>\n2\n</parameter>\n')),
  invalid('xml-parameters', 'no name', tag('\n<function=>\n</function>\n')),
  invalid('xml-parameters', 'JSON', tag('{"name": "f", "arguments": {}}')),
  invalid('key-value-tags', 'a key without a value', tag('f\n<arg_key>a</arg_key>\n')),
  invalid('key-value-tags', 'a value without a key', tag('f\n<arg_value>a</arg_value>\n')),
  invalid('key-value-tags', 'JSON', tag('{"name": "f", "arguments": {}}')),
  invalid('key-value-tags', 'two words for a name', tag('call f\n')),
  invalid('mistral-list', 'text behind the list', '[TOOL_CALLS][{"name": "f", "arguments": {}}] done'),
  invalid('mistral-list', 'one object instead of a list', '[TOOL_CALLS]{"name": "f", "arguments": {}}'),
  invalid('mistral-list', 'an empty list', '[TOOL_CALLS][]'),
  invalid('mistral-list', 'one bad call among good ones', '[TOOL_CALLS][{"name": "f", "arguments": {}}, {"arguments": {}}]'),
  invalid('mistral-args', 'no arguments', '[TOOL_CALLS]f', ['call-unclosed']),
  invalid('mistral-args', 'text behind the arguments', '[TOOL_CALLS]f[ARGS]{} done'),
  invalid('mistral-args', 'arguments that are a list', '[TOOL_CALLS]f[ARGS][1]'),
  invalid('mistral-args', 'no name', '[TOOL_CALLS][ARGS]{}'),
  invalid('deepseek-fenced', 'no fence', deepSeek('function<｜tool▁sep｜>f\n{}')),
  invalid('deepseek-fenced', 'an unclosed fence', deepSeek('function<｜tool▁sep｜>f\n```json\n{}\n')),
  invalid('deepseek-fenced', 'another type', deepSeek('tool<｜tool▁sep｜>f\n```json\n{}\n```')),
  invalid('deepseek-plain', 'a group without a call', 'I write <｜tool▁calls▁begin｜> and <｜tool▁calls▁end｜>.', []),
  invalid('deepseek-plain', 'a group with a bad call', `<｜tool▁calls▁begin｜>\n${deepSeek('f{}')}<｜tool▁calls▁end｜>`),
  invalid('deepseek-plain', 'no separator', deepSeek('f{}')),
  invalid('deepseek-plain', 'an endless name', deepSeek(`${'f'.repeat(600)}<｜tool▁sep｜>{}`)),
  invalid('kimi', 'an id without a number', kimi('functions.f<|tool_call_argument_begin|>{}')),
  invalid('kimi', 'an id without a name', kimi('functions.:0<|tool_call_argument_begin|>{}')),
  invalid('gemma-call', 'JSON strings', gemma('call:f{a:"b"}')),
  invalid('gemma-call', 'an unclosed quote', gemma('call:f{a:<|"|>b}')),
  invalid('gemma-call', 'no call', gemma('f{a:1}')),
  invalid('gemma-call', 'a bare word', gemma('call:f{a:word}')),
  invalid('pythonic-tagged', 'positional arguments', lfm('[f(1)]')),
  invalid('pythonic-tagged', 'an expression', lfm('[f(a=1 + 1)]')),
  invalid('pythonic-tagged', 'a name for a value', lfm('[f(a=b)]')),
  invalid('pythonic-tagged', 'a call in an argument', lfm('[f(a=g())]')),
  invalid('pythonic-tagged', 'no list', lfm('f(a=1)')),
  invalid('pythonic-tagged', 'the same argument twice', lfm('[f(a=1, a=2)]')),
  invalid('pythonic-tagged', 'a bracket of another kind', lfm('[f(a=[1)]]')),
  invalid('pythonic', 'a list of numbers', '[1, 2, 3]', []),
  invalid('pythonic', 'a link', '[the manual](https://example.org) says so', []),
  invalid('pythonic', 'a call and text behind it', '[f(a=1)] and then'),
  invalid('bare-json', 'an object that is an answer', '{"answer": 42}', []),
  invalid('bare-json', 'an empty object', '{}', []),
  invalid('bare-json', 'a set of numbers', '{1, 2}', []),
  invalid('bare-json', 'an object with a name that is an answer', '{"name": "Ada", "age": 36}', ['call-invalid']),
  invalid('bare-json', 'text behind the object', '{"name": "f", "parameters": {}} is what I would call'),
  invalid('bare-json', 'a call behind text', 'So: {"name": "f", "parameters": {}}', []),
  invalid('phi-list', 'one object instead of a list', '<|tool_call|>{"name": "f", "arguments": {}}<|/tool_call|>'),
]

describe('what is no call stays text and is counted', () => {
  test.each(malformed)('$row: $what', async ({ row, text, issues }) => {
    for (const pieces of [[1], [3, 1], [10_000]]) {
      const found = (await rowParser(row, false)).parse(text, { pieces })
      expect({ message: found.message, finishReason: found.finishReason }).toEqual({
        message: { role: 'assistant', content: text },
        finishReason: 'stop',
      })
      expect(found.issues).toEqual(issues)
    }
  })

  const closed = malformed.filter(
    ({ row, text }) => /<\/tool_call>$|｜>$|\|>$/.test(text) && row !== 'phi-list' && !text.endsWith('calls▁end｜>'),
  )
  test.each(closed)('and swallows no good call behind it: $row: $what', async ({ row, text, issues }) => {
    const found = (await rowParser(row, false)).parse(`${text}\n${good[row]}`)
    expect(found.message.toolCalls).toMatchObject([{ name: 'g' }])
    expect(JSON.parse(found.message.toolCalls![0]!.arguments)).toEqual({ k: 'v' })
    expect(found.message.content).toBe(text)
    expect(found.issues).toEqual(
      issues?.filter((issue) => issue !== 'open-missing').concat(issues.filter((issue) => issue === 'open-missing')),
    )
  })
})

describe('tagged calls', () => {
  test.each(['tagged-json', 'xml-parameters', 'key-value-tags', 'deepseek-plain', 'kimi', 'gemma-call', 'pythonic-tagged'])(
    'a closing marker left out before the stop is tolerated and counted: %s',
    async (row) => {
      const parser = await rowParser(row, true)
      const written = writers[row]!([{ name: 'f', arguments: { a: 'b' } }])
      const open = written.slice(0, written.lastIndexOf(`\uE000${parser.syntax.close}\uE001`))
      expect(parser.parse(open)).toMatchObject({ issues: ['close-missing'], message: { toolCalls: [{ name: 'f' }] } })
      expect(parser.parse(open, { unified: 'length' })).toMatchObject({ issues: ['call-unclosed'], finishReason: 'length' })
    },
  )

  test('a call left open does not swallow the one behind it', async () => {
    const parser = await rowParser('tagged-json', false)
    const { message, issues } = parser.parse(`<tool_call>{"name": "f", "arguments": {}}\n${good['tagged-json']}`)
    expect(message).toMatchObject({ content: '<tool_call>{"name": "f", "arguments": {}}', toolCalls: [{ name: 'g' }] })
    expect(issues).toEqual(['call-invalid'])
  })

  test('a string left open at the end of the text gives back the good calls it ran over', async () => {
    const parser = await rowParser('tagged-json', false)
    const bad = '<tool_call>{"name": "f", "arguments": {"a": "x}}</tool_call>'
    const between = good['tagged-json']!.replaceAll('\n', ' ')
    const { message, issues } = parser.parse(`${bad} ${between} ${between}`)
    expect(message.content).toBe(bad)
    expect(message.toolCalls?.map(({ name }) => name)).toEqual(['g', 'g'])
    expect(issues).toEqual(['call-invalid'])
  })

  test('text behind a call is content', async () => {
    const { message } = (await rowParser('kimi', true)).parse(`${writers['kimi']!([{ name: 'f', arguments: {} }])} Done.`)
    expect(message).toMatchObject({ content: 'Done.', toolCalls: [{ name: 'f' }] })
  })

  test('a marker token inside a string ends the call, spelled-out markers do not', async () => {
    const parser = await rowParser('tagged-json', true)
    const start = '\uE000<tool_call>\uE001{"name": "f", "arguments": {"a": "'
    const end = '\uE000</tool_call>\uE001'
    expect(parser.parse(`${start}x</tool_call>y"}}${end}`).message.toolCalls).toMatchObject([{ arguments: '{"a": "x</tool_call>y"}' }])
    expect(parser.parse(`${start}x${end}y"}}${end}`).issues).toEqual(['call-invalid'])
  })

  test.each(['pythonic', 'bare-json'])('the markers that Llama 4 puts round a message of calls mean nothing: %s', async (row) => {
    const written = `\uE000<|python_start|>\uE001${writers[row]!([{ name: 'f', arguments: {} }])}\uE000<|python_end|>\uE001`
    const { message, issues } = (await rowParser(row, true)).parse(written)
    expect({ message, issues }).toEqual({
      message: { role: 'assistant', content: null, toolCalls: [{ id: 'id0', name: 'f', arguments: '{}' }] },
      issues: [],
    })
  })

  test.each([
    ['kimi', kimi('functions.f:0<|tool_call_argument_begin|>')],
    ['deepseek-plain', deepSeek('f<｜tool▁sep｜>\n')],
    ['mistral-args', '[TOOL_CALLS]f[ARGS]'],
  ])('a call whose arguments nobody wrote has none: %s', async (row, text) => {
    for (const pieces of [[1], [10_000]]) {
      const { message, issues } = (await rowParser(row, false)).parse(text, { pieces })
      expect({ calls: message.toolCalls, issues }).toMatchObject({ calls: [{ name: 'f', arguments: '{}' }], issues: [] })
    }
  })

  test('ids that the model wrote are reported beside those that were minted', async () => {
    const calls = [
      { name: 'f', arguments: {} },
      { name: 'g', arguments: {} },
    ]
    const of = async (row: string) => (await rowParser(row, true)).parse(writers[row]!(calls)).promptCallIds
    expect(await of('kimi')).toEqual(['functions.f:0', 'functions.g:1'])
    expect(await of('mistral-list')).toEqual(['abcdefg00', 'abcdefg01'])
    expect(await of('tagged-json')).toEqual([null, null])
    const { promptCallIds, message } = (await rowParser('mistral-args', false)).parse('[TOOL_CALLS]f[CALL_ID]a1b2c3d4e[ARGS]{}')
    expect({ promptCallIds, ids: message.toolCalls?.map(({ id }) => id) }).toEqual({ promptCallIds: ['a1b2c3d4e'], ids: ['id0'] })
  })

  test('an id that the template would refuse is not reported', async () => {
    const parser = await rowParser('mistral-list', true)
    const idsOf = (id: string) =>
      parser.parse(`\uE000[TOOL_CALLS]\uE001[{"name": "f", "arguments": {}, "id": "${id}"}]`, { idForm: 'alphanumeric-9' }).promptCallIds
    expect([idsOf('a1b2c3d4e'), idsOf('call_1'), idsOf('')]).toEqual([['a1b2c3d4e'], [null], [null]])
  })

  test('a call inside reasoning is text, one behind it is not', async () => {
    for (const special of [true, false]) {
      const call = writers['tagged-json']!([{ name: 'f', arguments: {} }])
      const { message, issues } = (await rowParser('tagged-json', special)).parse(`<think>${call}</think>${call}`, { thinking: 'closed' })
      expect(message.toolCalls).toHaveLength(1)
      expect(issues).toEqual(['call-in-reasoning'])
    }
  })

  test('a forced call closes the reasoning that the prompt has opened', async () => {
    const forced = '\n</think>\n\n<tool_call>\n{"name": "f", "arguments":'
    const { message, issues } = (await rowParser('tagged-json', true)).parse(' {"a": 1}}\n\uE000</tool_call>\uE001', {
      thinking: 'open',
      forced,
    })
    expect(issues).toEqual([])
    expect(message).toEqual({ role: 'assistant', content: null, toolCalls: [{ id: 'id0', name: 'f', arguments: '{"a": 1}' }] })
  })
})

describe('values without quotes are typed by the schema', () => {
  const properties = {
    text: { type: 'string' },
    count: { type: 'integer' },
    maybe: { anyOf: [{ type: 'number' }, { type: 'null' }] },
    either: { type: ['string', 'integer'] },
    flag: { type: 'boolean' },
    kind: { enum: ['a', 'b'] },
    list: { $ref: '#/$defs/list' },
    any: {},
    tree: { $ref: '#/$defs/tree' },
  }
  const $defs = {
    list: { type: 'array' },
    tree: { anyOf: [...Array(30).fill({ $ref: '#/$defs/tree' }), { anyOf: [{ $ref: '#/$defs/tree' }, { type: 'boolean' }] }] },
  }
  const tools = [{ name: 'f', parameters: { type: 'object', properties, $defs } }]

  test.each([
    ['text', '007', '"007"'],
    ['text', 'null', '"null"'],
    ['text', '{"a": 1}', '"{\\"a\\": 1}"'],
    ['count', '7', '7'],
    ['count', '007', '"007"'],
    ['count', '7.5', '"7.5"'],
    ['count', '2.0', '2.0'],
    ['count', 'seven', '"seven"'],
    ['maybe', '1e-07', '1e-07'],
    ['maybe', 'None', 'null'],
    ['maybe', 'nan', '"nan"'],
    ['either', '5', '5'],
    ['either', '05', '"05"'],
    ['flag', 'True', 'true'],
    ['flag', 'false', 'false'],
    ['flag', 'yes', '"yes"'],
    ['kind', 'a', '"a"'],
    ['list', '[1, "x"]', '[1, "x"]'],
    ['list', "[1, 'x']", '"[1, \'x\']"'],
    ['tree', 'True', 'true'],
    ['tree', '12', '"12"'],
    ['any', '12', '12'],
    ['any', 'twelve', '"twelve"'],
    ['unknown', '12', '12'],
    ['toString', 'x', '"x"'],
  ])('%s: %s', async (key, text, json) => {
    const { message } = (await rowParser('xml-parameters', false)).parse(xml(`<parameter=${key}>\n${text}\n</parameter>\n`), { tools })
    expect(message.toolCalls?.[0]?.arguments).toBe(`{"${key}": ${json}}`)
  })

  test('a value keeps its lines, its white space and text that looks like its end', async () => {
    const value = '\n  <a>\n</parameter> is no end\n\n'
    const { message } = (await rowParser('xml-parameters', false)).parse(xml(`<parameter=text>\n${value}\n</parameter>\n`), { tools })
    expect(JSON.parse(message.toolCalls![0]!.arguments)).toEqual({ text: value })
  })
})

describe('Python literals', () => {
  test.each([
    [`a='it\\'s'`, `it's`],
    [`a="x\\ny"`, 'x\ny'],
    [`a="\\x41\\u00e9\\U0001F642"`, 'Aé🙂'],
    [`a='''x\n"y"'''`, 'x\n"y"'],
    [`a="\\d"`, '\\d'],
    [`a={'k': [True, None, -1.5e-3,], 'b': {}}`, { k: [true, null, -0.0015], b: {} }],
    ['a=false', false],
    [`a=")]"`, ')]'],
  ])('%s', async (text, value) => {
    const { message, issues } = (await rowParser('pythonic-tagged', true)).parse(
      `\uE000<|tool_call_start|>\uE001[f(${text})]\uE000<|tool_call_end|>\uE001`,
    )
    expect(issues).toEqual([])
    expect(JSON.parse(message.toolCalls![0]!.arguments)).toEqual({ a: value })
  })
})
