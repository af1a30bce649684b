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
  expect(members.of(sampling, 'served', true)).toBe('"max_tokens":512')
  expect(members.of(sampling, 'policy', true)).toBe('"model":"served","max_tokens":512')
  expect(members.of(sampling, undefined, true)).toBe('"model":"served","max_tokens":512')
  expect(made).toBe(1)
  expect(members.of({ ...sampling, maxTokens: 7 }, 'served', false)).toBe('"max_tokens":7')
  expect(made).toBe(2)
  const silent = createChatMembers({ model: { name: 'served', contextLength: 4096 }, splice: () => '' })
  expect([silent.of(sampling, 'served', true), silent.of(sampling, 'other', true)]).toEqual(['', '"model":"served"'])
})
