import fc from 'fast-check'
import { expect, test } from 'vitest'
import { liftLogprobs } from './lift-logprobs.ts'

const finite = fc.double({ noNaN: true, noDefaultInfinity: true, max: 0 })
const element = fc.record({
  token: fc.string({ unit: 'binary' }),
  logprob: finite,
  bytes: fc.option(fc.array(fc.nat(255), { maxLength: 6 })),
  top_logprobs: fc.constant([]),
})
const tricky = fc.constantFrom('"logprob":', '{"token":"', '"logprobs":{"content":[', '],"}', '\\', '"', '},{')
const elements = fc.array(
  fc.oneof(
    element,
    fc.tuple(element, tricky).map(([each, token]) => ({ ...each, token })),
  ),
  { minLength: 1 },
)

const answer = (content: readonly unknown[]) => ({
  choices: [{ message: { content: '"logprobs":{"content":[' }, logprobs: { content } }],
  after: [1],
})

test('numbers stand for the objects around them, whatever the tokens are', () => {
  fc.assert(
    fc.property(elements, (content) => {
      const lifted = JSON.parse(liftLogprobs(JSON.stringify(answer(content))))
      const expected = {
        ...answer([]),
        choices: [{ ...answer([]).choices[0], logprobs: { values: content.map(({ logprob }) => logprob + 0) } }],
      }
      expect(lifted).toEqual(JSON.parse(JSON.stringify(expected)))
    }),
    { numRuns: 500 },
  )
})

test('each event of a stream is lifted by itself', () => {
  const events = [1, 2, 3].map(
    (index) => `data: ${JSON.stringify(answer([{ token: 'x', logprob: -index, bytes: [120], top_logprobs: [] }]))}\n\n`,
  )
  const lifted = liftLogprobs(events.join('')).split('\n\n')
  expect(lifted.slice(0, 3).map((event) => JSON.parse(event.slice(6)).choices[0].logprobs)).toEqual([
    { values: [-1] },
    { values: [-2] },
    { values: [-3] },
  ])
})

test('what is written otherwise stays as it is', () => {
  const alternatives = answer([{ token: 'a', logprob: -1, bytes: [97], top_logprobs: [{ token: 'b', logprob: -2, bytes: [98] }] }])
  const ids = answer([{ token_id: 7, logprob: -1, rank: 1, top_logprobs: [] }])
  const mixed = answer([
    { token: 'a', logprob: -1, bytes: [97], top_logprobs: [] },
    { token: 'b', logprob: -1, bytes: ['x'], top_logprobs: [] },
  ])
  for (const text of [
    JSON.stringify(alternatives),
    JSON.stringify(ids),
    JSON.stringify(mixed),
    JSON.stringify(answer([])),
    JSON.stringify(answer([{ token: 'a', logprob: -1, bytes: [97], top_logprobs: [] }]), null, 1),
    '"logprobs":{"content":[{"token":"x","logprob":-1,"bytes":[1]',
    '"logprobs":{"content":[{"token":"x","logprob":',
    '',
  ])
    expect(liftLogprobs(text)).toBe(text)
})
