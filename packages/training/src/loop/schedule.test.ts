import type { TrainingTask } from '@aworld-train/core'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { drawTasks } from './draw-tasks.ts'
import { learningRateAt } from './learning-rate.ts'

const makeTasks = (count: number): TrainingTask[] =>
  Array.from({ length: count }, (_, i) => ({
    version: 1,
    id: `${i}`,
    hash: `${i}`,
    input: 'x',
    data: {},
    dataSource: 's',
    extraInfo: { kind: `${i % 3}` },
  }))

it('the learning rate rises over the warm-up and falls to its final fraction', () => {
  const schedule = { learningRate: 1, warmupSteps: 5, finalLearningRateFraction: 0.2 }
  const rates = Array.from({ length: 30 }, (_, i) => learningRateAt(i + 1, 30, schedule))
  expect(rates.slice(0, 5)).toEqual([0.2, 0.4, 0.6, 0.8, 1])
  expect(rates[29]).toBeCloseTo(0.2, 12)
  for (let i = 5; i < 30; i++) expect(rates[i]!).toBeLessThan(rates[i - 1]!)
  expect(learningRateAt(7, 9, { learningRate: 2, warmupSteps: 0, finalLearningRateFraction: 1 })).toBe(2)
  expect(learningRateAt(1, 1, schedule)).toBe(0.2)
})

it('every task is drawn once before any is drawn again', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 7 }), fc.nat(99), (count, promptsPerStep, seed) => {
      const tasks = makeTasks(count)
      const drawn: string[] = []
      for (let step = 1; drawn.length < count * 3; step++) {
        drawn.push(...drawTasks(tasks, { seed, step, promptsPerStep, stratify: null }).map(({ id }) => id))
      }
      for (let epoch = 0; epoch < 3; epoch++) expect(new Set(drawn.slice(epoch * count, (epoch + 1) * count)).size).toBe(count)
    }),
  )
})

it('a draw depends on seed and step alone, and kinds keep their counts', () => {
  const tasks = makeTasks(30)
  const stratify = { key: 'kind', counts: { 0: 4, 1: 1, 2: 2 } }
  const draw = (seed: number, step: number) => drawTasks(tasks, { seed, step, promptsPerStep: 7, stratify }).map(({ id }) => id)
  expect(draw(1, 5)).toEqual(draw(1, 5))
  expect(draw(2, 5)).not.toEqual(draw(1, 5))
  expect(draw(1, 5).map((id) => Number(id) % 3)).toEqual([0, 0, 0, 0, 1, 2, 2])
})

it('a mixed draw has the tasks of one that is not, and about the mixture in any part', () => {
  const tasks = makeTasks(60)
  const stratify = { key: 'kind', counts: { 0: 7, 1: 6, 2: 3 } }
  const draw = (isMixed: boolean) => drawTasks(tasks, { seed: 1, step: 2, promptsPerStep: 16, stratify, isMixed })
  const [mixed, apart] = [draw(true), draw(false)].map((drawn) => drawn.map(({ id }) => Number(id)))
  expect(mixed!.toSorted()).toEqual(apart!.toSorted())
  expect(apart!.map((id) => id % 3)).toEqual([0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2])
  for (let from = 0; from < 16; from++) {
    for (let to = from + 1; to <= 16; to++) {
      for (const [kind, count] of Object.entries(stratify.counts)) {
        const drawn = mixed!.slice(from, to).filter((id) => id % 3 === Number(kind)).length
        expect(Math.abs(drawn - (count * (to - from)) / 16)).toBeLessThan(2)
      }
    }
  }
})
