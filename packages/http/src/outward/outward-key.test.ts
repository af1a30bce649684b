import { expect, it } from 'vitest'
import { outwardKey, serviceOfKey } from './outward-key.ts'

it.each([
  ['the order of parameters', ['/s?b=2&a=1&a=0', undefined], ['/s?a=1&a=0&b=2', undefined]],
  ['how parameters are escaped', ['/s?q=a%20b', undefined], ['/s?q=a+b', undefined]],
  ['the part of the page', ['/s?q=1#top', undefined], ['/s?q=1', undefined]],
  ['the order of members of a JSON body', ['/s', '{"a":1,"b":[2]}'], ['/s', '{ "b": [2], "a": 1 }']],
] as const)('does not look at %s', (_, [target, body], [otherTarget, otherBody]) => {
  expect(outwardKey('search', 'POST', target, body)).toBe(outwardKey('search', 'POST', otherTarget, otherBody))
})

it.each([
  ['service', outwardKey('other', 'GET', '/s', undefined)],
  ['method', outwardKey('search', 'HEAD', '/s', undefined)],
  ['path', outwardKey('search', 'GET', '/S', undefined)],
  ['order of equal parameters', outwardKey('search', 'GET', '/s?a=2&a=1', undefined)],
  ['body', outwardKey('search', 'GET', '/s', '{"a":1}')],
])('tells requests apart by their %s', (_, key) => {
  expect([outwardKey('search', 'GET', '/s', undefined), outwardKey('search', 'GET', '/s?a=1&a=2', undefined)]).not.toContain(key)
})

it('tells bodies of bytes apart that are the same as text', () => {
  const keys = [0xfe, 0xff].map((byte) => outwardKey('search', 'POST', '/s', Uint8Array.of(byte)))
  expect(keys[0]).not.toBe(keys[1])
})

it('names its service, without its part', () => {
  expect(serviceOfKey(outwardKey('wiki:de', 'GET', '/w', undefined))).toBe('wiki')
  expect(serviceOfKey(outwardKey('search', 'GET', '/a b?c=d e', undefined))).toBe('search')
})
