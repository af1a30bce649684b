import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatOverride, parseOverride } from './hydra-override.ts'

describe('parseOverride', () => {
  it.each([
    ['a.b=1', { prefix: '', path: 'a.b', value: 1 }],
    ['+a.b=1e-6', { prefix: '+', path: 'a.b', value: 1e-6 }],
    ['++a=true', { prefix: '++', path: 'a', value: true }],
    ['a=NULL', { prefix: '', path: 'a', value: null }],
    ['a=', { prefix: '', path: 'a', value: '' }],
    ['a=Qwen/Qwen3-4B', { prefix: '', path: 'a', value: 'Qwen/Qwen3-4B' }],
    ["a=['/x/y z.parquet',b]", { prefix: '', path: 'a', value: ['/x/y z.parquet', 'b'] }],
    ['a={b:1,c:[x,2]}', { prefix: '', path: 'a', value: { b: 1, c: ['x', 2] } }],
    ["a='it\\'s'", { prefix: '', path: 'a', value: "it's" }],
    ['a="x=1"', { prefix: '', path: 'a', value: 'x=1' }],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: OmegaConf's
    ['a=${oc.select:b.c,[]}', { prefix: '', path: 'a', value: '${oc.select:b.c,[]}' }],
    ['~a', { prefix: '~', path: 'a', value: undefined }],
  ])('%s', (text, expected) => expect(parseOverride(text)).toEqual(expected))

  it.each([
    ['a=b,c', /sweep; write \[a,b\]/],
    ['a=[b', /not closed with \]/],
    ["a='b", /not closed with '/],
    ['a=b=c', /= needs quotes/],
    ['a', /write key=value/],
    ['--config-name=x', /flag of Hydra/],
  ])('refuses %s', (text, message) => expect(parseOverride(text)).toMatch(message))
})

describe('formatOverride', () => {
  const value = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      fc.string(),
      fc.constantFrom("'", '\\', "\\'", 'null', '1e-6', 'True', '', 'a,b', '/p/q.parquet', 'x:y', ' pad '),
      fc.integer(),
      fc.double({ noNaN: true, noDefaultInfinity: true }).map((each) => (Object.is(each, -0) ? 0 : each)),
      fc.boolean(),
      fc.constant(null),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.stringMatching(/^[a-z_]{1,6}$/), tie('value'), { maxKeys: 3, noNullPrototype: true }),
    ),
  })).value

  it('is read back as the same value', () => {
    fc.assert(
      fc.property(value, (each) => {
        expect(parseOverride(formatOverride('a.b', each, '++'))).toEqual({ prefix: '++', path: 'a.b', value: each })
      }),
    )
  })
})
