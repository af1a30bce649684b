import fc from 'fast-check'
import { expect, test } from 'vitest'
import { spliceMembers } from './splice-members.ts'

test('what is spliced into an object counts, and everything else stays', () => {
  const name = fc.oneof(fc.constantFrom('model', 'x"y', '{'), fc.string())
  const space = fc.constantFrom('', ' ', '\n\t ')
  fc.assert(
    fc.property(fc.dictionary(name, fc.jsonValue({ maxDepth: 3 })), fc.constantFrom(0, 2), space, space, (object, indent, inner, outer) => {
      const json = JSON.stringify(object, null, indent)
      const body = Buffer.from(json.slice(0, -1) + inner + json.slice(-1) + outer)
      expect(JSON.parse(spliceMembers(body, '"model":"other","new":1').toString('utf8'))).toEqual({
        ...JSON.parse(json),
        model: 'other',
        new: 1,
      })
      expect(spliceMembers(body, '')).toBe(body)
    }),
  )
})

test('a body in which no object ends is refused', () => {
  for (const text of ['', '  ', '[1]', '{"a":1', 'x']) expect(() => spliceMembers(Buffer.from(text), '"a":1')).toThrow(/not a JSON object/)
})
