import type { InvocationTrace } from '@aworld-train/core'
import { expect, it } from 'vitest'
import { isTextAlone, wordsOf } from './token-stream.ts'

it('cuts messages into words, with their white space and in any script, so that together they are the text', () => {
  const call = { id: 'call-0', name: 'lookup', arguments: '{"of":"gold"}' }
  const invocation = {
    turns: [
      {
        ...{ promptIds: [], completionIds: [] },
        messagesDelta: [
          { role: 'developer', content: 'Be  brief.\n' },
          { role: 'user', content: '金の元素記号は?' },
        ],
        message: { role: 'assistant', content: null, toolCalls: [call] },
      },
      {
        ...{ promptIds: [], completionIds: [] },
        messagesDelta: [{ role: 'tool', content: '', toolCallId: 'call-0' }],
        message: { role: 'assistant', content: ' It is Au. ' },
      },
    ],
  } as unknown as InvocationTrace
  const words = wordsOf(invocation)
  const of = (turn: number, origin: string) => words.filter((word) => word.turn === turn && word.origin === origin).map(({ text }) => text)
  expect(of(0, 'system')).toEqual(['Be', '  brief', '.', '\n'])
  expect(of(0, 'user').length).toBeGreaterThan(2)
  expect(of(0, 'user').join('')).toBe('金の元素記号は?')
  expect(of(0, 'sampled').join('')).toBe('lookup {"of":"gold"}')
  expect(of(1, 'tool')).toEqual([])
  expect(of(1, 'sampled')).toEqual([' It', ' is', ' Au', '.', ' '])
  expect(words.map(({ position }) => position)).toEqual(words.map((_, index) => index))
  expect(isTextAlone(invocation)).toBe(true)
})
