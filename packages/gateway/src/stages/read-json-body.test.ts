import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type BodyMemory, parseWhole, readJsonBody } from './read-json-body.ts'

const long = 'x'.repeat(20_000)
const message = (content: unknown) => ({ role: 'user', content })
const bytes = (value: unknown, space?: number) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value, null, space))

/** Reads one body after another and expects of each what JSON.parse gives. */
function readAll(bodies: readonly Buffer[]): { values: unknown[]; memory: BodyMemory } {
  const memory: BodyMemory = { last: null }
  const values = bodies.map((body) => {
    const { value, itemText } = readJsonBody(body, 'messages', memory)
    expect(value).toEqual(JSON.parse(body.toString()))
    if (itemText) expect(items(value).map((_, index) => JSON.parse(itemText(index)))).toEqual(items(value))
    expect(Object.keys(value as object)).toEqual(Object.keys(JSON.parse(body.toString())))
    return value
  })
  return { values, memory }
}

const items = (value: unknown) => (value as { messages: unknown[] }).messages

test('messages of the last request are not parsed again', () => {
  const history = [message(long), message('{"a": [1, "]}"]}'), message('q\\"')]
  const [first, second, third] = readAll([
    bytes({ model: 'm', messages: history, tools: [{ messages: [1] }] }),
    bytes({ model: 'm', messages: [...history, message('ünï')], tools: [] }),
    bytes({ model: 'm', messages: [...history, message('ünï'), message('c')] }),
  ]).values
  for (const index of [0, 1, 2]) expect(items(second)[index]).toBe(items(first)[index])
  for (const index of [0, 1, 2, 3]) expect(items(third)[index]).toBe(items(second)[index])
})

test('a changed message is read anew, and so is all after it', () => {
  const [first, second] = readAll([
    bytes({ messages: [message(long), message('b'), message('c')] }),
    bytes({ messages: [message(long), message('B'), message('c')] }),
  ]).values
  expect(items(second)[0]).toBe(items(first)[0])
  expect(items(second)[2]).not.toBe(items(first)[2])
})

test('the text that is given on holds every member but the history', () => {
  const memory: BodyMemory = { last: null }
  const body = (more: object[]) => bytes({ seed: 1.5, messages: [message(long), ...more], tools: [{ a: 1.25 }] })
  readJsonBody(body([]), 'messages', memory)
  const { json } = readJsonBody(body([message('new')]), 'messages', memory)
  expect(json).toBe('{"seed":1.5,"messages":[null,{"role":"user","content":"new"}],"tools":[{"a":1.25}]}')
})

describe('what is not plain is parsed whole', () => {
  const first = { model: 'm', messages: [message(long), message('b')] }
  const start = JSON.stringify(first).slice(0, -2)

  test.each([
    ['the list twice', `${start}],"messages":[{"role":"x"}]}`],
    ['the list twice, the second no list', `${start}],"messages":null}`],
    ['an escaped name', `${start}],"m\\u0065ssages":[1]}`],
    ['a list of lists', `${start},[1]]}`],
    ['strings and numbers', `${start},"a",1,null,true]}`],
    ['white space everywhere', `${start} , { "role" : "user" } \n ] , "n" : 1 } `],
    ['an empty list', `{"model":"m","messages":[],"x":"${long}"}`],
    ['no list', `{"model":"m","messages":"${long}"}`],
    ['no object', `["${long}"]`],
  ])('%s', (_, body) => {
    readAll([bytes(first), bytes(body), bytes(body)])
  })

  test.each([
    ['a comma too many', `${start},]}`],
    ['no comma', `${start}{"role":"user"}]}`],
    ['an item that goes on', `${start}1]}`],
    ['cut short', start],
    ['text behind it', `${start}]}}`],
    ['a control character', `${start},{"a":"\u0001"}]}`],
  ])('%s is refused as without a memory', (_, body) => {
    const memory: BodyMemory = { last: null }
    readJsonBody(bytes(first), 'messages', memory)
    const message = (read: () => unknown) => {
      try {
        read()
      } catch (error) {
        return (error as Error).message
      }
      return 'accepted'
    }
    const expected = message(() => parseWhole(bytes(body)))
    expect(expected).toContain('not valid JSON')
    expect(message(() => readJsonBody(bytes(body), 'messages', memory))).toBe(expected)
  })

  test('bytes that are no UTF-8', () => {
    const memory: BodyMemory = { last: null }
    readJsonBody(bytes(first), 'messages', memory)
    const body = Buffer.concat([bytes(`${start},{"a":"`), Buffer.from([0xff]), bytes('"}]}')])
    expect(() => readJsonBody(body, 'messages', memory)).toThrow('not valid UTF-8')
  })
})

test('whatever is sent, the value is that of JSON.parse', () => {
  const item = fc.oneof(
    { weight: 6, arbitrary: fc.record({ role: fc.constantFrom('user', 'tool'), content: fc.string({ unit: 'grapheme' }) }) },
    { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
  )
  const body = fc.record({
    keep: fc.nat(6),
    added: fc.array(item, { maxLength: 3 }),
    before: fc.option(fc.record({ [`a"\\`]: fc.jsonValue(), messages: fc.jsonValue() }, { requiredKeys: [] })),
    after: fc.option(fc.record({ tools: fc.jsonValue(), 'x:[': fc.string() }, { requiredKeys: [] })),
    space: fc.constantFrom(0, 1),
  })
  fc.assert(
    fc.property(fc.array(body, { minLength: 2, maxLength: 6 }), (bodies) => {
      let history: unknown[] = [message(long)]
      const sent = bodies.map(({ keep, added, before, after, space }) => {
        history = [...history.slice(0, keep + 1), ...added]
        return bytes({ ...before, messages: history, ...after }, space)
      })
      readAll(sent)
    }),
    { numRuns: 300 },
  )
})
