import { expect, it } from 'vitest'
import { align, sharedPrefix } from './align.ts'
import { leastOfBins } from './bins.ts'
import { toLines } from './lines.ts'
import { leastLikely, type Token } from './token-stream.ts'

/** Tokens of turns, one a word. Words of a prompt are small; sampled ones are capital. */
function tokens(...turns: readonly string[]): Token[] {
  let position = 0
  return turns.flatMap((turn, index) =>
    [...turn].map((text) => {
      const isSampled = text === text.toUpperCase()
      const sampled = { logprob: isSampled ? -position : null, trainerLogprob: null, version: null, advantage: null, isTrained: isSampled }
      return {
        id: text.charCodeAt(0),
        text,
        origin: isSampled ? ('sampled' as const) : ('user' as const),
        turn: index,
        position: position++,
        ...sampled,
      }
    }),
  )
}
const texts = (list: readonly Token[]) => list.map(({ text }) => text).join('')

it('finds the first token that differs, and lays turn beside turn', () => {
  const [a, b] = [tokens('abXY', 'cZ'), tokens('abXQ', 'cZ', 'dW')]
  expect(sharedPrefix(a, b)).toBe(3)
  const { lines, equal } = align(a, b)
  expect(lines.map(({ left, right, isSame }) => [texts(left), texts(right), isSame])).toEqual([
    ['ab', 'ab', true],
    ['XY', 'XQ', false],
    ['c', 'c', true],
    ['Z', 'Z', true],
    ['', 'd', false],
    ['', 'W', false],
  ])
  expect(texts(a.filter((token) => equal.has(token)))).toBe('abXcZ')
})

it('takes a token that is alone amid others for no match', () => {
  const { equal } = align(tokens('abmcd'), tokens('xymzw'))
  expect(equal.size).toBe(0)
})

it('compares two turns of a hundred thousand tokens that share their ends alone', () => {
  const [a, b] = [tokens(`a${'b'.repeat(100_000)}z`), tokens(`a${'c'.repeat(100_000)}z`)]
  expect(align(a, b).equal.size).toBe(4)
})

it('breaks lines at the width, at turns and between prompt and completion', () => {
  const placed = (isNamedAbove: boolean) => toLines(tokens('abcdXYZ', 'eW'), { width: 3, isNamedAbove }, () => 1)
  const lines = placed(false)
  expect(lines.map(({ tokens: list, startsTurn, startsPart, isSampled }) => [texts(list), startsTurn, startsPart, isSampled])).toEqual([
    ['abc', true, true, false],
    ['d', false, false, false],
    ['XYZ', false, true, true],
    ['e', true, true, false],
    ['W', false, true, true],
  ])
  // Prompt lines are 24 pixels high, sampled ones 29. Above a later turn there are 12 for a rule, and above each turn 24 if its name is
  // there.
  expect(lines.map(({ bottom }) => bottom)).toEqual([24, 48, 77, 113, 142])
  expect(placed(true).map(({ bottom }) => bottom)).toEqual([48, 72, 101, 161, 190])
})

it('opens at the least likely token, of one turn or of all', () => {
  const list = tokens('aXY', 'bZ')
  expect([leastLikely(list), leastLikely(list, 0), leastLikely(tokens('ab'))]).toEqual([4, 2, 0])
})

it('keeps the greatest surprise of every bin', () => {
  expect(leastOfBins([-1, -5, -2, -3, -9], 3)).toEqual([
    { start: 1, value: -5 },
    { start: 3, value: -3 },
    { start: 4, value: -9 },
  ])
})
