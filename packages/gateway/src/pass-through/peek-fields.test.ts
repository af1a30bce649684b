import { isRecord } from '@aworld-train/core'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { peekFields } from './peek-fields.ts'

const peek = (text: string) => peekFields(Buffer.from(text))

function isObject(text: string): boolean {
  try {
    return isRecord(JSON.parse(text))
  } catch {
    return false
  }
}

test('scalars of the outermost object are found wherever they stand', () => {
  expect(peek('{"model":"a","messages":[{"content":"\\"model\\":\\"b\\"","model":"c"}],"stream":true}')).toEqual({
    model: 'a',
    stream: true,
    askForUsage: '{"include_usage":true}',
  })
  const usage = { include_usage: false, include_obfuscation: false }
  expect(peek(JSON.stringify({ stream: true, stream_options: usage })).askForUsage).toBe(
    '{"include_usage":true,"include_obfuscation":false}',
  )
  expect(peek('{"stream":true,"stream_options":{"include_usage":true}}').askForUsage).toBeUndefined()
  expect(peek('{"stream":true,"stream_options":["x"]}').askForUsage).toBe('["x"]')
  expect(peek(' { "tools":[{"stream":true}], "stream" : false , "max_tokens": 5,"n":2}')).toEqual({
    stream: false,
    maxTokens: 5,
    n: 2,
    tools: [''],
  })
  expect(peek('{"model":"a","model":"\\u00fc\\""}')).toEqual({ model: 'ü"' })
  expect(peek('{"max_tokens":9,"max_completion_tokens":4}')).toEqual({ maxTokens: 4 })
  expect(peek('{"model":7,"stream":"yes","max_tokens":-1,"n":null}')).toEqual({})
})

test.each([
  ['{"tool_choice":"required"}', true],
  ['{"tool_choice":{"type":"function","function":{"name":"a"}}}', true],
  ['{"tool_choice":"auto"}', undefined],
  ['{"response_format":{"type":"json_object"}}', true],
  ['{"response_format":{"type":"text"}}', undefined],
  ['{"guided_json":{}}', true],
  ['{"structured_outputs":{"choice":["a"]}}', true],
  ['{"regex":null}', undefined],
])('whether decoding is constrained: %s', (text, constrained) => {
  expect(peek(text).constrained).toBe(constrained)
})

test('what is no object is refused, whatever its bytes are', () => {
  const check = (body: Buffer) => {
    if (isObject(body.toString('utf8'))) return
    expect(() => peekFields(body)).toThrow(expect.objectContaining({ code: 'GATEWAY_BAD_REQUEST' }))
  }
  for (const text of ['', 'null', '[{"model":"a"}]', '{', '{"model', '{"model":', '"model":"a"', '}', '{"a":"\\', '{"a":NaN}'])
    check(Buffer.from(text))
  const unit = fc.constantFrom('{', '}', '[', ']', '"', '\\', ':', ',', 'model', '1')
  fc.assert(fc.property(fc.string({ unit }), (text) => check(Buffer.from(text))))
  fc.assert(fc.property(fc.uint8Array(), (bytes) => check(Buffer.from(bytes))))
})

test('for any object it sees what JSON.parse sees', () => {
  const name = fc.constantFrom('model', 'messages', 'x"y', 'stream', '{', 'tools')
  fc.assert(
    fc.property(fc.dictionary(name, fc.jsonValue({ maxDepth: 3 })), fc.constantFrom(0, 2), (object, indent) => {
      const text = JSON.stringify(object, null, indent)
      const { model, stream } = JSON.parse(text)
      expect(peek(text).model).toBe(typeof model === 'string' && model !== '' ? model : undefined)
      expect(peek(text).stream).toBe(typeof stream === 'boolean' ? stream : undefined)
    }),
  )
})
