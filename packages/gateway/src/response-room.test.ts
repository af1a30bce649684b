import type { Turn } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { responseRoom } from './response-room.ts'

const turn = (parent: number | null, promptLength: number) => ({ parent, promptTokenIds: new Int32Array(promptLength) }) as Turn

/** Two conversations: 0 → 1 → 3, and 2 → 4. */
const turns = [turn(null, 10), turn(0, 30), turn(null, 50), turn(1, 60), turn(2, 70)]

test.each([
  ['a first call has all of it', null, 25, 100],
  ['the second call has what the first answer and its results left', 0, 30, 80],
  ['every later call is counted from the first answer of its own branch', 3, 80, 30],
  ['a branch begins anew', 4, 90, 60],
  ['nothing is left', 3, 110, 0],
])('%s', (_name, parent, promptLength, room) => {
  expect(responseRoom(turns, { parent, promptTokenIds: new Int32Array(promptLength) }, { maxResponseTokens: 100 })).toBe(room)
})

test('without a bound there is no end', () => {
  expect(responseRoom(turns, { parent: 3, promptTokenIds: new Int32Array(1_000) }, {})).toBe(Number.POSITIVE_INFINITY)
})
