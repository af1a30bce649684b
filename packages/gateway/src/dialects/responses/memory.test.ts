import type { Message } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { createResponseMemory, wholeJson } from './memory.ts'

const user = (content: string): Message => ({ role: 'user', content })

test('the oldest answers go where there are too many', () => {
  const memory = createResponseMemory({ maxResponses: 2 })
  for (const id of ['a', 'b', 'c']) memory.set(id, { messages: [user(id)], json: id })
  expect(['a', 'b', 'c'].map((id) => memory.get(id)?.json)).toEqual([undefined, 'b', 'c'])
  expect([memory.delete('b'), memory.delete('b')]).toEqual([true, false])
})

test('a history that is sent with every call is kept once', () => {
  const memory = createResponseMemory({ maxCharacters: 30_000 })
  const history = (turns: number) => Array.from({ length: turns }, (_, index) => user(`${index}`.padEnd(1_000)))
  for (let turn = 1; turn <= 20; turn++) memory.set(`r${turn}`, { messages: history(turn), json: '{}' })
  // If each answer kept the whole conversation, there would be 210,000 characters.
  expect(memory.get('r1')?.messages).toEqual(history(1))
  expect(memory.get('r20')?.messages).toEqual(history(20))
  expect(memory.get('r20')?.messages[0]).toBe(memory.get('r1')?.messages[0])
  memory.set('edited', { messages: [user('x'.padEnd(1_000)), ...history(20).slice(1)], json: '{}' })
  expect(memory.get('edited')?.messages[0]?.content?.trim()).toBe('x')
  expect(memory.get('r1')?.messages[0]?.content?.trim()).toBe('0')
})

test('what answers repeat of their requests is kept once', () => {
  const memory = createResponseMemory({ maxCharacters: 3_000 })
  const echo = `"tools":"${'x'.repeat(1_000)}"`
  for (const id of ['a', 'b', 'c', 'd', 'e'])
    memory.set(id, { messages: [], json: `{"id":"${id}"}`, echo: `${echo.slice(0, 500)}${echo.slice(500)}` })
  expect(wholeJson(memory.get('a')!)).toBe(`{"id":"a",${echo}}`)
  expect(wholeJson(memory.get('e')!)).toBe(`{"id":"e",${echo}}`)
})

test('the newest answer is kept however long it is, and then little else', () => {
  const memory = createResponseMemory({ maxCharacters: 100 })
  memory.set('small', { messages: [user('a')], json: '{}' })
  memory.set('large', { messages: [user('x'.repeat(500))], json: '{}' })
  expect([memory.get('small'), memory.get('large')?.json]).toEqual([undefined, '{}'])
})
