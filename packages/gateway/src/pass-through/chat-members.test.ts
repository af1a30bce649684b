import type { Sampling } from '@aworld-train/protocol'
import { expect, test } from 'vitest'
import { createChatMembers } from './chat-members.ts'

const sampling: Sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 512, stop: [], seed: 0 }

test('members are made once for a sampling that lasts, each time for another, and name the model where the request does not', () => {
  let made = 0
  const splice = ({ maxTokens }: Sampling) => {
    made++
    return `"max_tokens":${maxTokens}`
  }
  const members = createChatMembers({ model: { name: 'served', contextLength: 4096 }, splice })
  expect(members.of(sampling, { model: 'served' }, true)).toBe('"max_tokens":512')
  expect(members.of(sampling, { model: 'policy' }, true)).toBe('"model":"served","max_tokens":512')
  expect(members.of(sampling, {}, true)).toBe('"model":"served","max_tokens":512')
  expect(made).toBe(1)
  expect(members.of({ ...sampling, maxTokens: 7 }, { model: 'served' }, false)).toBe('"max_tokens":7')
  expect(made).toBe(2)
  const silent = createChatMembers({ model: { name: 'served', contextLength: 4096 }, splice: () => '' })
  expect([silent.of(sampling, { model: 'served' }, true), silent.of(sampling, { model: 'other' }, true)]).toEqual(['', '"model":"served"'])
  // Last, so that it counts also where the engine sets it.
  expect(members.of(sampling, { model: 'served', topLogprobs: 3 }, true)).toBe('"max_tokens":512,"top_logprobs":3')
  expect(silent.of(sampling, { model: 'served', topLogprobs: 3 }, true)).toBe('"top_logprobs":3')
})
