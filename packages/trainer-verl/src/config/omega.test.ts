import { expect, it } from 'vitest'
import { resolveTree } from './omega.ts'

// biome-ignore-start lint/suspicious/noTemplateCurlyInString: OmegaConf's references
it.each([
  ['${b}', 3],
  ['${c.d}', 'x'],
  ['${.e}', 'sibling'],
  ['${..b}', 3],
  ['${oc.select:nothing,7}', 7],
  ['${oc.select:nothing}', null],
  ['${oc.select:nothing,${b}}', 3],
  ['${oc.select:nothing,[]}', []],
  ['${nothing}', '${nothing}'],
  ['checkpoints/${c.d}/${b}', 'checkpoints/x/3'],
  ['${chain}', 3],
  ['${c}', { d: 'x' }],
  ['${oc.env:HERE}', 'there'],
  ['${oc.env:GONE,fallback}', 'fallback'],
  ['${oc.env:GONE}', '${oc.env:GONE}'],
])('resolves %s', (text, expected) => {
  const tree = { a: { value: text, e: 'sibling' }, b: 3, c: { d: 'x' }, chain: '${also}', also: '${b}' }
  expect((resolveTree(tree, { HERE: 'there' })['a'] as { value: unknown }).value).toEqual(expected)
})

it('ends where references go round', () => {
  expect(resolveTree({ a: '${b}', b: '${a}' })).toEqual({ a: expect.stringContaining('${'), b: expect.stringContaining('${') })
})
// biome-ignore-end lint/suspicious/noTemplateCurlyInString: OmegaConf's references
