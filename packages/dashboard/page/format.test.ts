import { expect, it } from 'vitest'
import { brief, percent, points, probability, prose, seconds, shellWord, signed, visible } from './format.ts'

it('makes what cannot be seen visible, and interprets nothing', () => {
  expect(visible('a\n\t\u001b[31m\u0000\u202e<b>')).toBe('a↵⇥\\x1b[31m\\x00\\u202e<b>')
  expect(prose('a\n\tb\u0007')).toBe('a\n    b\\x07')
})

it('writes a path as one word of a shell', () => {
  expect(['runs/a-1', 'my runs/a', "it's", '$(x)'].map(shellWord)).toEqual(['runs/a-1', "'my runs/a'", "'it'\\''s'", "'$(x)'"])
})

it('writes numbers with the digits that say something', () => {
  expect([0.5, 12, 990, 61_500, 125_000, 7_200_000].map(seconds)).toEqual(['0.5 ms', '12 ms', '990 ms', '61.5 s', '2.1 min', '2.0 h'])
  expect([0, 0.00001, 0.1234, 12.34, 7, 12_345, -2].map(brief)).toEqual(['0', '1.0e−5', '0.123', '12.3', '7', '12\u2009345', '−2'])
  expect([0, -0.0001, -0.7, -9].map(probability)).toEqual(['1.000', '> 0.999', '0.497', '< 0.001'])
  expect([points(null), points(0.5), points(-1), signed(0.25), signed(-0.25), percent(0.5), percent(Number.NaN)]).toEqual([
    '–',
    '0.5',
    '−1',
    '+0.25',
    '−0.25',
    '50.0 %',
    '–',
  ])
})
