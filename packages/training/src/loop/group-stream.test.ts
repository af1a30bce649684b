import { describe, expect, it } from 'vitest'
import {
  admitGroups,
  chooseGroups,
  emptyStream,
  fillStep,
  type GroupStream,
  groupsToDraw,
  redrawGroups,
  withoutGroups,
} from './group-stream.ts'

const settings = (maxStaleness: number, hardStaleness = false) => ({
  promptsPerStep: 2,
  samplesPerPrompt: 8,
  firstSamples: null as number | null,
  teachingPrompts: null,
  maxPrompts: null,
  maxStaleness,
  hardStaleness,
})

/** Open groups, each by its draw and the step that it was admitted for. */
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

describe('fillStep', () => {
  const open = stream([
    [0, 1],
    [1, 1],
    [2, 2],
    [3, 2],
    [4, 2],
    [5, 2],
  ])
  const filled = (maxStaleness: number, hardStaleness = false) => ({
    ...settings(maxStaleness, hardStaleness),
    teachingPrompts: 2,
    maxPrompts: 4,
  })
  const all = [0, 1, 2, 3, 4, 5]
  it.each<[string, { ready: number[]; teaching: number[]; step?: number }, ReturnType<typeof filled>, number[] | null]>([
    ['takes the oldest until enough teach', { ready: all, teaching: [0, 2, 4] }, filled(2), [0, 1, 2]],
    ['takes no more than maxPrompts', { ready: all, teaching: [5] }, filled(2), [0, 1, 2, 3]],
    ['passes over what is not ready', { ready: [1, 3, 4, 5], teaching: [3, 4, 5] }, filled(2), [1, 3, 4]],
    ['waits while too few teach', { ready: [0, 1, 2], teaching: [1] }, filled(2), null],
    ['takes what would be too old for the next step', { ready: all, teaching: [0, 1, 2] }, filled(1), [0, 1]],
    ['takes that beyond what is needed', { ready: all, teaching: all, step: 3 }, filled(1), all],
    ['waits for that where staleness is hard', { ready: [0, 2, 3], teaching: all }, filled(1, true), null],
    ['passes over that where staleness is not', { ready: [0, 2, 3], teaching: all }, filled(1), [0, 2]],
    ['takes all without staleness', { ready: all, teaching: [0, 1] }, filled(0), all],
    ['waits for all without staleness', { ready: [0, 1, 2, 3, 4], teaching: [0, 1] }, filled(0), null],
    ['takes all in the last step', { ready: all, teaching: [0, 1], step: 9 }, filled(8), all],
    ['waits for all in the last step', { ready: [0, 1], teaching: [0, 1], step: 9 }, filled(8), null],
  ])('%s', (_, { ready, teaching, step = 2 }, limits, draws) => {
    const state = {
      step,
      steps: 9,
      isReady: ({ draw }: { draw: number }) => ready.includes(draw),
      teaches: ({ draw }: { draw: number }) => teaching.includes(draw),
    }
    expect(drawsOf(fillStep(open, state, limits))).toEqual(draws)
  })

  it.each([
    ['as many as have to teach yet', 5, 1, 5, 9, 4],
    ['no more than may be drawn', 5, 1, 5, 7, 2],
    ['none where enough teach', 2, 3, 5, 9, 0],
    ['none where all that may be are drawn', 5, 0, 9, 9, 0],
    ['up to twice the first draw by default', 5, 0, 2, null, 2],
  ])('draws %s', (_, teachingPrompts, teaching, groups, maxPrompts, count) => {
    const taken = stream(Array.from({ length: groups }, (_group, draw) => [draw, 1] as const)).open
    expect(groupsToDraw(taken, ({ draw }) => draw < teaching, { ...settings(0), teachingPrompts, maxPrompts })).toBe(count)
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
