import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createEventReader, type ServerEvent } from './read-events.ts'

function readAll(text: string, size: number): string[] {
  const reader = createEventReader()
  const bytes = Buffer.from(text)
  const events: ServerEvent[] = []
  for (let at = 0; at < bytes.length; at += size) events.push(...reader.push(bytes.subarray(at, at + size)))
  events.push(...reader.finish())
  return events.map(({ data }) => data)
}

test('data of events, whatever ends the lines and however the bytes are cut', () => {
  const text = ': hello\r\n\r\nevent: a\r\ndata: {"x":"ü🙂"}\r\nid: 1\r\n\r\ndata:one\rdata: two\r\rdata\n\nretry: 5\n\ndata: [DONE]'
  for (let size = 1; size <= text.length; size++) expect(readAll(text, size)).toEqual(['{"x":"ü🙂"}', 'one\ntwo', '', '[DONE]'])
})

test('an event has its name, and the next one none', () => {
  const reader = createEventReader()
  expect(reader.push(Buffer.from('event: rollout-end\ndata: {}\n\ndata: 1\n\n'))).toEqual([
    { name: 'rollout-end', data: '{}' },
    { name: '', data: '1' },
  ])
})

test('for any events and any cuts they are what was written', () => {
  const data = fc.string({ unit: 'grapheme' }).map((value) => JSON.stringify(value))
  fc.assert(
    fc.property(fc.array(data), fc.constantFrom('\n', '\r\n', '\r'), fc.integer({ min: 1, max: 9 }), (events, end, size) => {
      const text = events.map((event) => `event: x${end}data: ${event}${end}${end}`).join('')
      expect(readAll(text, size)).toEqual(events)
    }),
  )
})

test('a long event in many chunks costs in proportion to its length', () => {
  const reader = createEventReader()
  const chunk = Buffer.alloc(64, 'x')
  reader.push(Buffer.from('data: '))
  const started = performance.now()
  for (let count = 0; count < 20_000; count++) reader.push(chunk)
  expect(reader.finish()[0]?.data.length).toBe(64 * 20_000)
  // Searching the whole line with every chunk takes twenty seconds.
  expect(performance.now() - started).toBeLessThan(10_000)
})
