import { Turn } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { lookupTool, openaiClient, sessionRequest, startGateway } from '../testing/start-gateway.ts'
import { recordedFields } from './recorded-fields.ts'

test('fields without effect stand in the turn as they were written', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const session = started.gateway.open(sessionRequest())
  const { baseUrl } = session.endpoint('agent')
  const body = '{"messages":[{"role":"user","content":"Hi."}],"temperature":0.10,"seed":null,"x_new":{"10":1.0,"9":[]},"__proto__":{"a":1}}'
  expect((await fetch(`${baseUrl}/chat/completions`, { method: 'POST', body })).status).toBe(200)
  await openaiClient(session.endpoint('agent')).chat.completions.create({
    model: 'any',
    messages: [{ role: 'user', content: 'Hi.' }],
    tools: [lookupTool],
  })
  const [first, second] = (await session.close())[0]!.turns
  expect(Object.entries(first!.unusedFields!)).toEqual([
    ['temperature', '0.1'],
    ['x_new', '{"10":1.0,"9":[]}'],
    ['__proto__', '{"a":1}'],
  ])
  expect(second).not.toHaveProperty('unusedFields')
  const plain = { ...first!, unusedFields: { temperature: '0.1', x_new: '{"10":1.0,"9":[]}' } }
  expect(Turn.decode(JSON.parse(JSON.stringify(Turn.encode(plain))))).toEqual(plain)
})

test('fields beyond the room of a record are named', () => {
  const { unusedFields } = recordedFields({ small: '1', large: 'x'.repeat(70_000), late: '2' })
  expect(unusedFields).toEqual({ small: '1', large: '"(70000 characters left out)"', late: '2' })
  const many = recordedFields(Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`field-${index}`, '{}'])))
  expect(JSON.stringify(many).length).toBeLessThan(600_000)
  expect(recordedFields({})).toEqual({})
})
