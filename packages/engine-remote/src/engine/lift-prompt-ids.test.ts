import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createKnownPrompt } from './known-prompt.ts'
import { liftPromptIds } from './lift-prompt-ids.ts'

const lift = (text: string) => liftPromptIds(Buffer.from(text))

test('ids and the rest together are the answer, whatever stands around them', () => {
  const ids = fc.array(fc.integer({ min: 0, max: 999_999_999 }))
  fc.assert(
    fc.property(fc.jsonValue(), ids, fc.jsonValue(), fc.boolean(), (before, list, after, spaced) => {
      const written = spaced ? `[${list.join(', ')}]` : JSON.stringify(list)
      const answer = `{"before":${JSON.stringify(before)},"prompt_token_ids":${spaced ? ' ' : ''}${written},"after":${JSON.stringify(after)}}`
      const { promptTokenIds, text } = lift(answer)
      expect(promptTokenIds).toEqual(Int32Array.from(list))
      expect({ ...JSON.parse(text), prompt_token_ids: list }).toEqual(JSON.parse(answer))
    }),
  )
})

test('what is no list of ids stays where it is', () => {
  for (const list of ['[1,-2]', '[1.5]', '[1e3]', '[1,,2]', '[1 2]', '[null]', '["1"]', '[1,', '[[1]]', '[12345678901]', '[,]']) {
    const answer = `{"prompt_token_ids":${list}}`
    expect(lift(answer)).toEqual({ promptTokenIds: null, repeated: 0, text: answer })
  }
  expect(lift('{"a":"\\"prompt_token_ids\\":[1]","prompt_token_ids":null}').promptTokenIds).toBeNull()
  expect(lift('').promptTokenIds).toBeNull()
})

test('of a conversation only the new ids are read, and no list is taken for one that goes on from another', () => {
  // Few digits, so that lists that begin alike, as 1,2 and 1,23, come often.
  const list = fc.array(fc.integer({ min: 0, max: 30 }), { maxLength: 6 })
  const step = fc.record({ goesOn: fc.boolean(), list, bad: fc.integer({ min: 0, max: 9 }).map((value) => value === 0) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      const known = createKnownPrompt()
      let last: number[] = []
      for (const { goesOn, list, bad } of steps) {
        const ids = goesOn ? [...last, ...list] : list
        const lifted = liftPromptIds(Buffer.from(`{"prompt_token_ids":[${bad ? [...ids, '-1'] : ids}]}`), known)
        const begins = last.length > 0 && last.every((id, index) => ids[index] === id)
        if (bad) expect(lifted.promptTokenIds).toBeNull()
        else expect([[...lifted.promptTokenIds!], lifted.repeated]).toEqual([ids, begins ? last.length : 0])
        last = bad ? [] : ids
      }
    }),
    { numRuns: 500 },
  )
})
