import { type Trajectory, Turn } from '@aworld-train/core'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { startChatGateway } from '../testing/start-chat-gateway.ts'
import { post, sessionRequest } from '../testing/start-gateway.ts'
import { unreadFields } from './unread-fields.ts'

const messages = [{ role: 'user', content: 'Gold?' }]

const fieldsOf = (json: string) => unreadFields(JSON.parse(json), json)

test('fields that reach a chat engine unread stand in the turn as they were written', async () => {
  await using started = await startChatGateway(() => '79')
  const session = started.gateway.open(sessionRequest())
  const unread = [
    ['temperature', '0.10'],
    ['response_format', '{"type": "json_object"}'],
    ['x_ü', '"\\u00fc 😀 \\ud800"'],
    ['x_new', '{"10":1.0,"9":[12345678901234567890]}'],
    ['__proto__', '{"a":1}'],
    ['user', '"me"'],
  ] as const
  const text = unread.map(([name, value]) => `"${name}": ${value}`)
  const body = `{${text.slice(0, 3)}, "messages":${JSON.stringify(messages)},"seed":null,"stream":false,"max_tokens":9,${text.slice(3)} }`
  expect((await post(session.endpoint('agent'), body)).status).toBe(200)
  expect(started.server.calls[0]!.raw.startsWith(body.slice(0, -2))).toBe(true)
  expect((await post(session.endpoint('agent'), { model: 'policy', messages, max_tokens: 3, stream: true })).status).toBe(200)
  const [{ turns }] = (await session.close()) as [Trajectory]
  expect(Object.entries(turns[0]!.unusedFields!)).toEqual(unread)
  expect(turns[1]).not.toHaveProperty('unusedFields')
  const { unusedFields = {}, ...turn } = turns[0]!
  const { __proto__: _, ...plain } = unusedFields
  expect(Turn.decode(JSON.parse(JSON.stringify(Turn.encode({ ...turn, unusedFields: plain }))))).toEqual({ ...turn, unusedFields: plain })
})

test('fields that a translation to a chat engine leaves out stand in the turn, whatever their names', async () => {
  await using started = await startChatGateway(() => '79')
  const fields = { temperature: 0.25, n: [2], modalities: 'x', x_deep: { '10': 1, '9': ['é'] } }
  for (const [path, body] of [
    ['/responses', { input: 'Gold?' }],
    ['/messages', { messages, max_tokens: 64 }],
  ] as const) {
    const session = started.gateway.open(sessionRequest({ rollout: path }))
    for (const more of [fields, {}]) {
      const init = { method: 'POST', body: JSON.stringify({ ...body, ...more }) }
      expect((await fetch(session.endpoint('agent').baseUrl + path, init)).status).toBe(200)
    }
    const [{ turns }] = (await session.close()) as [Trajectory]
    expect(turns[0]!.messagesDelta).toMatchObject(messages)
    expect(turns[0]!.unusedFields).toEqual({ temperature: '0.25', n: '[2]', modalities: '"x"', x_deep: '{"9":["é"],"10":1}' })
    expect(turns[1]).not.toHaveProperty('unusedFields')
    expect(started.server.calls.at(-2)!.body).not.toHaveProperty('x_deep')
  }
})

test('what finds no more room in a turn keeps its name, and a flood of fields breaks no call', async () => {
  await using started = await startChatGateway(() => '79')
  const session = started.gateway.open(sessionRequest())
  const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`field-${index}`, {}]))
  expect((await post(session.endpoint('agent'), { messages, blob: 'x'.repeat(1_000_000), small: 1 })).status).toBe(200)
  expect((await post(session.endpoint('agent'), { ...many, messages })).status).toBe(200)
  const [{ turns }] = (await session.close()) as [Trajectory]
  expect(turns[0]!.unusedFields).toEqual({ blob: '"(1000002 characters left out)"', small: '1' })
  expect(JSON.stringify(turns[1]!.unusedFields).length).toBeLessThan(600_000)
})

test('of equal names the last counts, one that is null is none, and a name with escapes is what it says', () => {
  expect(fieldsOf('{"a":1,"messages":[],"b":2,"a":null,"b":3}')).toEqual({ b: '3' })
  expect(fieldsOf('{"\\u0061\\"":1,"mess\\u0061ges":[1],"m\\u006fdel":"x"}')).toEqual({ 'a"': '1' })
})

test('they are those that JSON.parse finds, wherever the messages stand', () => {
  const name = fc.oneof(fc.constantFrom('model', 'messages', 'tools', 'x"messages":[', 'ü', '__proto__'), fc.string({ maxLength: 4 }))
  const value = fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.constant([{ role: 'user', content: '"messages":[1],"x":{' }]))
  const read = new Set(['messages', 'model', 'tools', 'n', 'stream'])
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.tuple(name, value), { maxLength: 6, selector: ([key]) => key }),
      fc.constantFrom('', ' ', '\n'),
      (members, space) => {
        const json = `${space}{${members.map(([key, each]) => `${JSON.stringify(key)}${space}:${space}${JSON.stringify(each)}${space}`).join(',')}}`
        const found = Object.entries(fieldsOf(json)).map(([key, text]) => [key, JSON.parse(text) as unknown] as const)
        const expected = members.filter(([key, each]) => !read.has(key) && each !== null)
        expect(new Map(found)).toEqual(new Map(JSON.parse(JSON.stringify(expected)) as typeof expected))
      },
    ),
    { numRuns: 500 },
  )
})
