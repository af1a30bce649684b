import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Dialect } from '../call.ts'
import { chatCompletions } from './chat-completions/index.ts'
import { messages } from './messages/index.ts'
import { responses } from './responses/index.ts'
import { createResponseMemory } from './responses/memory.ts'

const user = { role: 'user', content: 'Hi.' }
const decodeText = (dialect: Dialect, json: string) => dialect.decode(JSON.parse(json), json, createResponseMemory())
const decode = (dialect: Dialect, body: object) =>
  decodeText(dialect, JSON.stringify({ ...(dialect === responses ? { input: 'Hi.' } : { messages: [user] }), ...body }))

test('a schema keeps the text that it was written in', () => {
  const schema = '{ "maximum" : 1.0, "multipleOf":1e-2,\n"enum":["\\u00fc", 12345678901234567890], "b":1, "a":2, "2":0, "1":0 }'
  const chat = `{"messages":[{"role":"user","content":"\\"response_format\\""}],"response_format":{"json_schema":{"name":"x","schema":${schema} },"type":"json_schema"}}`
  const input = `{"input":"a","text":{"verbosity":"low","format":{"schema":${schema},"type":"json_schema","name":"x"}}}`
  const claude = `{"messages":[{"role":"user","content":"a"}],"output_config":{"format":{"type":"json_schema","schema": ${schema}}}}`
  const form = { kind: 'json-schema', schema }
  expect(decodeText(chatCompletions, chat).constraint).toEqual({ form, param: 'response_format', strict: false })
  expect(decodeText(responses, input).constraint).toEqual({ form, param: 'text.format', strict: false })
  expect(decodeText(messages, claude).constraint).toEqual({ form, param: 'output_config.format', strict: true })
})

test('text is no form, and what stands beside a form has no effect as before', () => {
  for (const format of [undefined, null, { type: 'text' }]) {
    expect(decode(chatCompletions, { response_format: format })).toMatchObject({ constraint: undefined, ignored: [] })
    expect(decode(responses, { text: { format } })).toMatchObject({ constraint: undefined, ignored: [] })
    expect(decode(messages, { output_config: { format } })).toMatchObject({ constraint: undefined, ignored: [] })
  }
  expect(decode(responses, { text: { format: { type: 'json_object' }, verbosity: 'low' } })).toMatchObject({
    constraint: { form: { kind: 'json-object' } },
    ignored: ['text'],
    unusedFields: { text: '{"format":{"type":"json_object"},"verbosity":"low"}' },
  })
  expect(decode(messages, { output_config: { effort: 'low' } })).toMatchObject({ constraint: undefined, ignored: ['output_config'] })
})

test.each<[object, object]>([
  [{ json: { type: 'integer' } }, { kind: 'json-schema', schema: '{"type":"integer"}' }],
  [
    { json: '{"type": "integer"}', regex: null },
    { kind: 'json-schema', schema: '{"type": "integer"}' },
  ],
  [{ json_object: true }, { kind: 'json-object' }],
  [{ regex: '[0-9]+' }, { kind: 'regex', pattern: '[0-9]+' }],
  [{ choice: ['a', 'b'] }, { kind: 'choice', choices: ['a', 'b'] }],
  [{ grammar: 'root ::= "a"' }, { kind: 'grammar', grammar: 'root ::= "a"' }],
])('structured_outputs %j', (input, form) => {
  expect(decode(chatCompletions, { structured_outputs: input }).constraint).toEqual({ form, param: 'structured_outputs', strict: true })
})

const deep = (levels: number): object => (levels === 0 ? {} : { items: deep(levels - 1) })

test.each<[Dialect, object, string]>([
  [chatCompletions, { response_format: 'json' }, 'response_format'],
  [chatCompletions, { response_format: {} }, 'response_format.type'],
  [chatCompletions, { response_format: { type: 'grammar' } }, 'response_format.type'],
  [chatCompletions, { response_format: { type: 'json_schema' } }, 'response_format.json_schema'],
  [chatCompletions, { response_format: { type: 'json_schema', json_schema: {} } }, 'response_format.json_schema.schema'],
  [
    chatCompletions,
    { response_format: { type: 'json_schema', json_schema: { schema: { a: 'x'.repeat(70_000) } } } },
    'response_format.json_schema.schema',
  ],
  [chatCompletions, { response_format: { type: 'json_schema', json_schema: { schema: deep(80) } } }, 'response_format.json_schema.schema'],
  [chatCompletions, { structured_outputs: [] }, 'structured_outputs'],
  [chatCompletions, { structured_outputs: {} }, 'structured_outputs'],
  [chatCompletions, { structured_outputs: { json_object: false } }, 'structured_outputs'],
  [chatCompletions, { structured_outputs: { json_object: 1 } }, 'structured_outputs.json_object'],
  [chatCompletions, { structured_outputs: { regex: '' } }, 'structured_outputs.regex'],
  [chatCompletions, { structured_outputs: { regex: 'a', choice: ['b'] } }, 'structured_outputs'],
  [chatCompletions, { structured_outputs: { choice: [] } }, 'structured_outputs.choice'],
  [chatCompletions, { structured_outputs: { choice: ['a', 5] } }, 'structured_outputs.choice[1]'],
  [chatCompletions, { structured_outputs: { constructor: 'a' } }, 'structured_outputs.constructor'],
  [chatCompletions, { structured_outputs: { regex: 'a' }, response_format: { type: 'json_object' } }, 'structured_outputs'],
  [responses, { text: 'json' }, 'text'],
  [responses, { text: { format: { type: 'json_schema', schema: [] } } }, 'text.format.schema'],
  [responses, { text: { format: { type: 'grammar' } } }, 'text.format.type'],
  [messages, { output_config: 5 }, 'output_config'],
  [messages, { output_config: { format: { type: 'json_schema' } } }, 'output_config.format.schema'],
])('%o %j is refused', (dialect, body, param) => {
  expect(() => decode(dialect, body)).toThrow(
    expect.objectContaining({ code: 'GATEWAY_BAD_REQUEST', details: expect.objectContaining({ param }) }),
  )
})

test('whatever stands in the field, a form is read or refused', () => {
  const names = ['type', 'json_schema', 'schema', 'format', 'json', 'regex', 'choice', 'grammar', 'json_object']
  const leaf = fc.oneof(fc.constantFrom('text', 'json_object', 'json_schema', ''), fc.jsonValue())
  const value = fc.dictionary(fc.constantFrom(...names), fc.oneof(leaf, fc.dictionary(fc.constantFrom(...names), leaf)))
  fc.assert(
    fc.property(value, fc.constantFrom('response_format', 'structured_outputs'), (input, field) => {
      try {
        const { constraint } = decode(chatCompletions, { [field]: input })
        if (constraint?.form.kind === 'json-schema') JSON.stringify(constraint.form.schema)
      } catch (error) {
        expect(error).toMatchObject({ code: 'GATEWAY_BAD_REQUEST' })
      }
    }),
  )
})
