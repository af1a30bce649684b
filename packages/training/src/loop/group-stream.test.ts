import { describe, expect, it } from 'vitest'
import { admitGroups, chooseGroups, emptyStream, type GroupStream, redrawGroups, withoutGroups } from './group-stream.ts'

const settings = (maxStaleness: number, hardStaleness = false) => ({
  ...{ promptsPerStep: 2, samplesPerPrompt: 8, firstSamples: null as number | null, maxStaleness, hardStaleness },
})

/** Open groups by their draw and the step that they were admitted for. */
const stream = (open: readonly (readonly [draw: number, admitted: number])[], drawn = 100): GroupStream => ({
  drawn,
  open: open.map(([draw, admitted]) => ({ draw, admitted, emptied: 0, samples: 8 })),
})
const drawsOf = (groups: GroupStream['open'] | null) => groups?.map(({ draw }) => draw) ?? null

describe('admitGroups', () => {
  it.each<[string, GroupStream, number, number, number[]]>([
    ['the groups of a step without staleness', emptyStream, 1, 0, [0, 1]],
    [
      'nothing while a step of groups is open without staleness',
      stream(
        [
          [0, 1],
          [1, 1],
        ],
        2,
      ),
      1,
      0,
      [0, 1],
    ],
    ['steps ahead', emptyStream, 1, 2, [0, 1, 2, 3, 4, 5]],
    [
      'what a trained step has freed, beside groups that go on',
      stream(
        [
          [1, 1],
          [3, 1],
        ],
        4,
      ),
      2,
      1,
      [1, 3, 4, 5],
    ],
    ['no more than the last steps need', stream([[7, 4]], 9), 5, 3, [7, 9]],
    [
      'nothing where all are drawn',
      stream(
        [
          [8, 4],
          [9, 4],
        ],
        10,
      ),
      5,
      1,
      [8, 9],
    ],
  ])('admits %s', (_, from, step, maxStaleness, draws) => {
    const { open, drawn } = admitGroups(from, step, 5, settings(maxStaleness))
    expect(drawsOf(open)).toEqual(draws)
    expect(drawn).toBe(Math.max(from.drawn, (draws.at(-1) ?? -1) + 1))
    expect(open.slice(from.open.length).every(({ admitted }) => admitted === step)).toBe(true)
  })
})

describe('chooseGroups', () => {
  const open = [
    [0, 1],
    [1, 1],
    [2, 2],
    [3, 2],
    [4, 3],
  ] as const
  it.each<[string, number[], number, ReturnType<typeof settings>, number[] | null]>([
    ['waits while too few are ready', [3], 3, settings(1), null],
    ['takes the oldest of those that are ready', [1, 3, 4], 3, settings(1), [1, 3]],
    ['drops none by its age', [0, 1, 2, 3, 4], 99, settings(1), [0, 1]],
    ['waits for a group that the next step would train too late, where staleness is hard', [1, 2, 3], 2, settings(1, true), null],
    ['overtakes groups that later steps can train in time, where staleness is hard', [2, 3], 2, settings(2, true), [2, 3]],
    ['goes on once the oldest are ready, where staleness is hard', [0, 1], 2, settings(1, true), [0, 1]],
  ])('%s', (_, ready, step, limits, draws) => {
    expect(drawsOf(chooseGroups(stream(open), ({ draw }) => ready.includes(draw), step, limits))).toEqual(draws)
  })

  it('keeps hard staleness, and trains every group once, whatever order groups become ready in', () => {
    for (const maxStaleness of [0, 1, 3]) {
      for (let seed = 1; seed <= 50; seed++) {
        let random = seed
        const next = () => {
          random = (random * 48_271) % 0x7fffffff
          return random / 0x7fffffff
        }
        const steps = 12
        const trained: number[] = []
        let groups = emptyStream
        const ready = new Set<number>()
        for (let step = 1; step <= steps; step++) {
          groups = admitGroups(groups, step, steps, settings(maxStaleness))
          expect(groups.open.length).toBeLessThanOrEqual((maxStaleness + 1) * 2)
          let chosen = chooseGroups(groups, ({ draw }) => ready.has(draw), step, settings(maxStaleness, true))
          while (chosen === null) {
            const waiting = groups.open.filter(({ draw }) => !ready.has(draw))
            ready.add(waiting[Math.floor(next() * waiting.length)]!.draw)
            chosen = chooseGroups(groups, ({ draw }) => ready.has(draw), step, settings(maxStaleness, true))
          }
          for (const { admitted, draw } of chosen) {
            expect(step - admitted).toBeLessThanOrEqual(maxStaleness)
            trained.push(draw)
          }
          groups = withoutGroups(groups, chosen)
        }
        expect(trained.sort((a, b) => a - b)).toEqual(Array.from({ length: steps * 2 }, (_, draw) => draw))
      }
    }
  })
})

it('draws the groups of a step anew where all its rollouts failed, and leaves the others', () => {
  const before = stream([
    [0, 1],
    [1, 1],
    [2, 1],
  ])
  const again = redrawGroups(before, before.open.slice(0, 2), 2, { ...settings(1), firstSamples: 4 })
  expect(again.open.map(({ emptied }) => emptied)).toEqual([1, 1, 0])
  expect(again.open.map(({ admitted }) => admitted)).toEqual([2, 2, 1])
  expect(again.open.map(({ samples }) => samples)).toEqual([4, 4, 8])
  expect(drawsOf(withoutGroups(again, again.open.slice(0, 1)).open)).toEqual([1, 2])
})
