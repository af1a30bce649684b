import fc from 'fast-check'
import { expect, test } from 'vitest'
import { scanArrayMember } from './scan-members.ts'

const elements = (text: string) => scanArrayMember(text, 'messages')?.map(([start, end]) => JSON.parse(text.slice(start, end))) ?? null

test('elements of an array are found as JSON.parse finds them, wherever the member stands', () => {
  const name = fc.constantFrom('model', 'messages', 'x"messages"', 'tools', '{', 'n')
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 3 }),
    fc.array(fc.jsonValue({ maxDepth: 2 })),
    fc.constant({ messages: [1, [2], '"messages":[3]'] }),
  )
  fc.assert(
    fc.property(fc.array(fc.tuple(name, value), { maxLength: 6 }), fc.constantFrom('', ' ', '\n  '), (members, space) => {
      const text = `${space}{${members.map(([key, each]) => `${space}${JSON.stringify(key)}${space}:${space}${JSON.stringify(each, null, space)}`).join(',')}${space}}`
      const { messages } = JSON.parse(text) as { messages?: unknown }
      expect(elements(text)).toEqual(Array.isArray(messages) ? messages : null)
    }),
    { numRuns: 1000 },
  )
})

test('what is cut off or no object has no elements, and none throws', () => {
  for (const text of ['', '[{"messages":[1]}]', '{"messages":[1', '{"messages"', '{"messages":"[1]"}'])
    expect(scanArrayMember(text, 'messages')).toBeNull()
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('{', '}', '[', ']', '"', '\\', ':', ',', '"messages"', '1') }),
      (text) => void scanArrayMember(text, 'messages'),
    ),
  )
})
