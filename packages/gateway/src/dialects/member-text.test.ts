import fc from 'fast-check'
import { expect, test } from 'vitest'
import { itemTexts, memberText, memberTexts } from './member-text.ts'

test('the text of a member is what was written', () => {
  expect(memberText('{"a": 1, "tools" : [ {"x": 1.0, "10": 2, "9": "]}"} ] , "b": 2}', 'tools')).toBe('[ {"x": 1.0, "10": 2, "9": "]}"} ]')
  expect(memberText('{"tools":1,"tools":2}', 'tools')).toBe('2')
  expect(memberText('{"a":{"tools":1},"b":["tools",{"tools":2}],"c":"tools"}', 'tools')).toBeUndefined()
  expect(memberText('{"a\\"":"\\\\","tools":"x\\\\\\"y"}', 'tools')).toBe('"x\\\\\\"y"')
  expect(memberText('{}', 'tools')).toBeUndefined()
})

test('for any object it parses to the member', () => {
  const value = fc.jsonValue({ maxDepth: 4 })
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom('a', 'tools', 'x"y', '{', '[', '\\'), value), fc.constantFrom(0, 2), (object, indent) => {
      const text = memberText(JSON.stringify(object, null, indent), 'tools')
      if (Object.hasOwn(object, 'tools')) expect(JSON.parse(text!)).toEqual(JSON.parse(JSON.stringify(object['tools'])))
      else expect(text).toBeUndefined()
      for (const [name, written] of memberTexts(JSON.stringify(object, null, indent))) {
        expect(JSON.parse(written)).toEqual(JSON.parse(JSON.stringify(object[name])))
      }
      expect([...memberTexts(JSON.stringify(object)).keys()].sort()).toEqual(Object.keys(object).sort())
    }),
  )
})

test('the items of an array are what was written', () => {
  expect(itemTexts(' [ {"a": [1, 2]} , 1.0,"],"  , [] ]')).toEqual(['{"a": [1, 2]}', '1.0', '"],"', '[]'])
  expect(itemTexts('[]')).toEqual([])
  fc.assert(
    fc.property(fc.array(fc.jsonValue({ maxDepth: 3 })), fc.constantFrom(0, 2), (items, indent) => {
      const texts = itemTexts(JSON.stringify(items, null, indent))
      expect(texts.map((text) => JSON.parse(text))).toEqual(JSON.parse(JSON.stringify(items)))
    }),
  )
})
