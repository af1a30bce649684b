import { expect, it } from 'vitest'
import { acceptedPart } from './accepted-part.ts'
import { LocalConfig } from './local-config.ts'

const good = { model: { path: 'm' }, data: { promptKey: 'text' } }

it.each([
  ['nothing where all is right', {}, []],
  ['an unknown key', { training: { stratify: { key: 'kind', count: {} }, steps: 3 } }, ['training']],
  ['several problems of one section', { training: { stratify: { key: 1, count: {} }, steps: 3, stepz: 4 } }, ['training']],
  ['a value of another type', { training: { learningRate: 'fast', betas: [1, 'x'], steps: 3 } }, ['training']],
  ['a section of another type', { training: 5 }, ['training']],
  ['an entry that lacks something', { models: { critic: { model: 'm' } } }, ['models']],
  ['a section of an unknown name, and the one that was meant', { rewrd: { path: 'x' } }, ['rewrd', 'reward']],
])('leaves out what has a problem, and no more: %s', (_name, more, failed) => {
  const accepted = acceptedPart(LocalConfig, { ...good, ...more })
  expect(accepted.failed).toEqual(failed)
  expect(accepted.problems.length > 0).toBe(failed.length > 0)
  expect(accepted.data).toMatchObject(good)
  if ('training' in more && typeof more.training === 'object') expect(accepted.data.training).toMatchObject({ steps: 3, stratify: null })
})
