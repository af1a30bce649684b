import type { RolloutRow } from '@aworld-train/core'
import { expect, it } from 'vitest'
import { bestAndWorst } from './best-and-worst.ts'

type Written = readonly [key: string, split: string, step: number, reward: number | null]

/** A run whose rollouts finished in this order. */
function runOf(written: readonly Written[]) {
  const rows = written.map(([key, split, step, reward], index) => ({ key, split, step, reward, finished: index + 1 }) as RolloutRow)
  return {
    splits: () => Object.fromEntries(rows.map(({ split }) => [split, 1])),
    rolloutRows: ({ split }: { readonly split?: string | undefined }) => ({ rows: rows.filter((row) => row.split === split), next: null }),
  }
}

it('takes the best and the worst of the last evaluation, and no failure of training', () => {
  const run = runOf([
    ['evaluation/before/0/0', 'test', 0, 1],
    ['train/1/0/0', 'train', 1, null],
    ['evaluation/after/0/0', 'test', 2, 0.5],
    ['evaluation/after/1/0', 'test', 2, 0],
    ['evaluation/after/2/0', 'test', 2, null],
    ['evaluation/after/3/0', 'test', 2, 0.75],
    ['train/2/0/0', 'train', 2, 1],
  ])
  expect(bestAndWorst(run)).toEqual(['evaluation/after/3/0', 'evaluation/after/1/0'])
})

it('takes one episode where all rewards are equal, those of the last step without an evaluation, and the last without rewards', () => {
  expect(
    bestAndWorst(
      runOf([
        ['evaluation/eval/0/0', 'test', 0, 1],
        ['evaluation/eval/1/0', 'test', 0, 1],
      ]),
    ),
  ).toEqual(['evaluation/eval/0/0'])
  const trained = runOf([
    ['train/1/0/0', 'train', 1, 0],
    ['train/2/0/0', 'train', 2, 1],
    ['train/2/0/1', 'train', 2, 0.5],
  ])
  expect(bestAndWorst(trained)).toEqual(['train/2/0/0', 'train/2/0/1'])
  expect(
    bestAndWorst(
      runOf([
        ['a', 'serve', 0, null],
        ['b', 'serve', 0, null],
      ]),
    ),
  ).toEqual(['b'])
  expect(bestAndWorst(runOf([]))).toEqual([])
})
