import { expect, it } from 'vitest'
import { type Collapse, CollapseFinder, type StepReward } from './collapse-finder.ts'

/** A step of tasks whose kinds have these rewards, `rollouts` of each. */
function stepOf(
  step: number,
  kinds: Readonly<Record<string, number>>,
  rollouts: Readonly<Record<string, number>> = {},
  scale = 1,
): StepReward {
  const rows = Object.entries(kinds).map(([kind, mean]) => {
    const count = rollouts[kind] ?? 8
    return { kind, rollouts: count, sum: mean * count, least: 0, greatest: scale }
  })
  const sumOf = (key: 'rollouts' | 'sum') => rows.reduce((sum, row) => sum + row[key], 0)
  return { step, reward: sumOf('sum') / sumOf('rollouts'), kinds: rows }
}

/** What each step finds, for the steps that find something. */
function found(steps: readonly StepReward[]): [number, readonly Collapse[]][] {
  const finder = new CollapseFinder()
  return steps.map((step) => [step.step, finder.add(step)] as [number, readonly Collapse[]]).filter(([, falls]) => falls.length > 0)
}

const curve = (rewards: readonly number[], scale = 1) => rewards.map((reward, index) => stepOf(index + 1, { all: reward }, {}, scale))

function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const rising = [0.2, 0.3, 0.45, 0.6, 0.7, 0.75, 0.8, 0.8]

it('finds a collapse at the first step at which three steps lie 0.25 below the best three, and once', () => {
  const [first, ...others] = found(curve([...rising, 0.62, 0.44, 0.44, 0.44, 0.43, 0.45]))
  expect(others).toEqual([])
  expect(first).toMatchObject([11, [{ kind: null, best: { first: 6, last: 8 }, latest: { first: 9, last: 11, reward: 0.5 } }]])
})

it('finds a second collapse only after the first was made good', () => {
  const high = Array<number>(8).fill(0.8)
  const low = Array<number>(8).fill(0.3)
  expect(found(curve([...high, ...low, ...high, ...low])).map(([step]) => step)).toEqual([11, 27])
  expect(found(curve([...high, ...low, 0.4, 0.4, 0.4, 0.4, ...low]))).toHaveLength(1)
})

it('finds nothing in fewer than six steps, in steps that rise, and where all rewards are alike', () => {
  expect(found(curve([1, 1, 1, 0, 0]))).toEqual([])
  expect(found(curve([1, 1, 1, 0, 0, 0])).map(([step]) => step)).toEqual([6])
  expect(found(curve(rising))).toEqual([])
  const alike = Array.from({ length: 20 }, (_, index) => stepOf(index + 1, { all: index % 2 ? 0.1 : 0.1 + 1e-17 }))
  expect(found(alike.map((step) => ({ ...step, kinds: step.kinds.map((kind) => ({ ...kind, least: 0.1, greatest: 0.1 })) })))).toEqual([])
})

it.each([
  ['of 0 to 100', 100],
  ['of 0 to 0.01', 0.01],
])('takes a quarter of the spread of rewards %s', (_, scale) => {
  const fallingBy = (fall: number) =>
    curve(
      [...Array<number>(8).fill(0.8), ...Array<number>(4).fill(0.8 - fall)].map((reward) => reward * scale),
      scale,
    )
  expect(found(fallingBy(0.2))).toEqual([])
  expect(found(fallingBy(0.3)).map(([step]) => step)).toEqual([11])
})

it('takes 0.25 where only the trainer knows the rewards of rollouts', () => {
  const unknown = (rewards: readonly number[]) => curve(rewards).map((step) => ({ ...step, kinds: [] }))
  expect(found(unknown([...Array<number>(8).fill(0.8), 0.5, 0.5, 0.5])).map(([step]) => step)).toEqual([11])
  expect(found(unknown([...Array<number>(8).fill(0.8), 0.6, 0.6, 0.6]))).toEqual([])
})

it('finds a kind that is lost while the others hide it in the mean', () => {
  const twoHop = [0.1, 0.2, 0.4, 0.7, 0.7, ...Array<number>(15).fill(0)]
  const steps = twoHop.map((two, index) =>
    stepOf(index + 1, { one: Math.min(0.95, 0.2 + 0.1 * index), two, comparison: 0.4 }, { one: 56, two: 48, comparison: 24 }),
  )
  const [[, falls], ...others] = found(steps) as [[number, readonly Collapse[]]]
  expect(others).toEqual([])
  expect(falls.map(({ kind, best, latest }) => [kind, best.last, latest.reward])).toEqual([['two', 5, 0]])
})

it('takes harder tasks for no collapse, and finds one among them', () => {
  const easy = Array.from({ length: 10 }, (_, index) => stepOf(index + 1, { easy: 0.95, hard: 0.3 }, { easy: 120, hard: 8 }))
  const mixed = (from: number, length: number, hard: number) =>
    Array.from({ length }, (_, index) => stepOf(from + index, { easy: 0.95, hard }, { easy: 8, hard: 120 }))
  expect(found([...easy, ...mixed(11, 20, 0.3)])).toEqual([])
  const [[step, falls]] = found([...easy, ...mixed(11, 6, 0.3), ...mixed(17, 10, 0.7), ...mixed(27, 10, 0.2)]) as [
    [number, readonly Collapse[]],
  ]
  expect(step).toBeGreaterThan(27)
  expect(falls.map(({ kind }) => kind)).toContain('hard')
})

it('passes over a step whose rewards all abstained', () => {
  const steps = curve(Array<number>(12).fill(0.8))
  expect(found(steps.map((step, index) => (index % 3 === 0 && index > 5 ? { ...step, reward: 0, kinds: [] } : step)))).toEqual([])
})

it.each([1, 2, 4, 16])('does not take chance for a collapse, with %i prompts a step that are solved or failed whole', (prompts) => {
  const warned = Array.from({ length: 60 }, (_, seed) => {
    const next = random(seed * 977 + prompts)
    return found(
      curve(
        Array.from(
          { length: 60 },
          () => Array.from({ length: prompts }, () => (next() < 0.5 ? 1 : 0)).reduce<number>((a, b) => a + b, 0) / prompts,
        ),
      ),
    )
  }).filter((collapses) => collapses.length > 0)
  expect(warned.length).toBeLessThanOrEqual(6)
})

it('finds the fall of a noisy curve that is deeper than chance', () => {
  const next = random(7)
  const noisy = Array.from({ length: 30 }, (_, index) => (index < 15 ? 0.8 : 0.3) + 0.2 * (next() - 0.5))
  expect(found(curve(noisy)).map(([step]) => step)).toEqual([expect.toSatisfy((step: number) => step > 15 && step < 20)])
})

it('knows the reward after a step', () => {
  const finder = new CollapseFinder()
  for (const step of curve([0.1, 0.2, 0.3, 0.6])) finder.add(step)
  expect([finder.rewardAfter(0, null), finder.rewardAfter(3, 'all'), finder.rewardAfter(4, null), finder.rewardAfter(0, 'other')]).toEqual([
    expect.closeTo(0.2, 9),
    0.6,
    null,
    null,
  ])
})
