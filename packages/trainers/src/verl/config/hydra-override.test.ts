import { describe, expect, it } from 'vitest'
import { parseOverride } from './hydra-override.ts'

describe('parseOverride', () => {
  it.each([
    ['a.b=1', { prefix: '', path: 'a.b', value: 1 }],
    ['+a.b=1e-6', { prefix: '+', path: 'a.b', value: 1e-6 }],
    ['++a=true', { prefix: '++', path: 'a', value: true }],
    ['a=null', { prefix: '', path: 'a', value: null }],
    ['a=', { prefix: '', path: 'a', value: '' }],
    ['a=Qwen/Qwen3-4B', { prefix: '', path: 'a', value: 'Qwen/Qwen3-4B' }],
    ["a=['/x/y z.parquet',b]", { prefix: '', path: 'a', value: ['/x/y z.parquet', 'b'] }],
    ['a="x=1"', { prefix: '', path: 'a', value: 'x=1' }],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: OmegaConf's
    ['a=${oc.select:b.c,[]}', { prefix: '', path: 'a', value: '${oc.select:b.c,[]}' }],
    ['a=[b', { prefix: '', path: 'a', value: '[b' }],
    ['~a', { prefix: '~', path: 'a', value: undefined }],
  ])('%s', (text, expected) => expect(parseOverride(text)).toEqual(expected))

  it.each([
    ['a', /write key=value/],
    ['--config-name=x', /flag of Hydra/],
  ])('refuses %s', (text, message) => expect(parseOverride(text)).toMatch(message))
})
