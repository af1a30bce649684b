import type { RunEvent } from '@aworld-train/core'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createRunDisplay } from './run-display.ts'
import { createScreen } from './screen.test-support.ts'

beforeEach(() => vi.useFakeTimers({ toFake: ['Date', 'setInterval', 'clearInterval'] }))
afterEach(() => vi.useRealTimers())

const at = 0
const end = {
  attempt: 0,
  taskId: 't',
  stopReason: 'completed',
  reward: 1,
  turns: 3,
  toolCalls: 2,
  sampledTokens: 40,
  durationMs: 9,
} as const

/** A run of 20 steps with 16 rollouts each, and an evaluation before. */
function* events(): Generator<RunEvent> {
  yield { type: 'run-start', version: 1, at, run: 'chemist', path: 'runs/chemist', seed: 1, resumedFromStep: null, details: { seed: 1 } }
  yield { type: 'phase-progress', at, phase: 'warm-up', done: 0, total: 2, metrics: { loss: 0.123456 } }
  yield { type: 'phase-progress', at, phase: 'warm-up', done: 2, total: 2, metrics: { loss: 0.023456 } }
  yield { type: 'evaluation-start', at, name: 'before', rollouts: 40 }
  for (let index = 0; index < 40; index++) yield { type: 'rollout-end', at, rollout: `test/${index}`, split: 'test', ...end }
  const metrics = { reward: 0.25, low: 0.2, high: 0.3, tasks: 20, rollouts: 40, failed: 1 }
  yield { type: 'evaluation-end', at, name: 'before', step: 0, metrics }
  for (let step = 1; step <= 20; step++) {
    yield { type: 'step-start', at, step, steps: 20 }
    for (let index = 0; index < 16; index++) yield { type: 'rollout-start', at, rollout: `${step}/${index}`, attempt: 0, split: 'train' }
    for (let index = 0; index < 16; index++) yield { type: 'rollout-end', at, rollout: `${step}/${index}`, split: 'train', ...end }
    yield { type: 'step-end', at, step, steps: 20, weightVersion: step, metrics: { rewardMean: step / 20 } }
    if (step === 10) yield { type: 'warning-raised', at, code: 'CONFIG_WARNING', message: 'Something is to be said.' }
    if (step === 20) yield { type: 'warning-raised', at, code: 'CONFIG_NOTE', message: 'Something has no effect.' }
  }
  yield { type: 'run-end', at, status: 'finished' }
}

/** The final content of a terminal of `columns`, and the most lines that it ever had. */
function shownOn(columns: number, env: NodeJS.ProcessEnv = {}, resize?: { at: number; columns: number }) {
  const screen = createScreen(columns)
  const stream = { isTTY: true, columns, write: (text: string) => screen.write(text) }
  const display = createRunDisplay({ stream: stream as unknown as NodeJS.WriteStream, json: false, env })
  let most = 0
  for (const [index, event] of [...events()].entries()) {
    vi.setSystemTime(index * 100)
    if (index === resize?.at) {
      stream.columns = resize.columns
      screen.resize(resize.columns)
    }
    display.show(event)
    most = Math.max(most, screen.lines().length)
  }
  display.close()
  return { lines: screen.lines(), most }
}

const kept = [
  'run      runs/chemist',
  'seed     1',
  expect.stringMatching(/^warm-up (?:━+ )?2\/2 {2}0:00/),
  'before: reward 0.250 [0.200, 0.300] on 20 tasks, 40 rollouts, 1 failed',
  'warning  Something is to be said.',
  'note     Something has no effect.',
  '',
]

describe('on a terminal', () => {
  it.each([70, 80, 120, 200])('of %i columns the live line is drawn in place and leaves nothing behind', (columns) => {
    const { lines, most } = shownOn(columns)
    expect(lines).toEqual(kept)
    expect(most).toBe(kept.length)
  })

  it.each([20, 40])('of %i columns too, where text is broken', (columns) => {
    const { lines, most } = shownOn(columns)
    expect(lines.join('')).toContain('before: reward 0.250 [0.200, 0.300] on 20')
    expect(lines.filter((line) => line.includes('/20 steps'))).toEqual([])
    expect(most).toBeLessThanOrEqual(15)
  })

  it('that becomes narrower or wider nothing is left behind', () => {
    for (const [from, to] of [
      [120, 50],
      [120, 90],
      [80, 200],
    ] as const)
      expect(shownOn(from, {}, { at: 300, columns: to }).lines.filter((line) => /steps|rollouts run/.test(line))).toEqual([])
  })

  it('shows reward, time and rollouts as far as there is room', () => {
    const liveLines = (columns: number) => {
      const written: string[] = []
      const stream = { isTTY: true, columns, write: (text: string) => written.push(text) }
      const display = createRunDisplay({ stream: stream as unknown as NodeJS.WriteStream, json: false, env: { NO_COLOR: '1' } })
      for (const [index, event] of [...events()].slice(0, 410).entries()) {
        vi.setSystemTime(index * 100)
        display.show(event)
      }
      display.close()
      return written.at(-2)?.replace('\r\u001b[2K', '')
    }
    expect([40, 60, 80, 120].map(liveLines)).toMatchInlineSnapshot(`
      [
        "train ━━━╌╌ 10/20 steps  0:36 left",
        "train ━━━━╌╌╌╌ 10/20 steps  0:36 left  reward 0.500",
        "train ━━━━━━╌╌╌╌╌ 10/20 steps  0:36 left  reward 0.500  9 rollouts run  7 ended",
        "train ━━━━━━━━━╌╌╌╌╌╌╌╌ 10/20 steps  0:36 left  reward 0.500  9 rollouts run  7 ended   ▁▁▂▂▂▃▃▄▄",
      ]
    `)
  })
})

it('says what takes long before a run begins, on a terminal until something else is said', () => {
  const check = { type: 'phase-progress', at, phase: 'check trl: its imports', done: 0, total: 1, metrics: {} } as const
  const [begin] = [...events()] as [RunEvent]
  const shown = (env: NodeJS.ProcessEnv) => {
    const screen = createScreen(80)
    const stream = { isTTY: true, columns: 80, write: (text: string) => screen.write(text) }
    const display = createRunDisplay({ stream: stream as unknown as NodeJS.WriteStream, json: false, env })
    display.show(check)
    const early = screen.lines()
    display.show(begin)
    return [early, screen.lines()[0]]
  }
  expect(shown({})).toEqual([[expect.stringMatching(/^check trl: its imports .*0\/1 {2}0:00$/)], 'run      runs/chemist'])
  expect(shown({ CI: 'true' })).toEqual([['check trl: its imports …', ''], 'check trl: its imports …'])
})

it.each([{ TERM: 'dumb' }, { CI: 'true' }])('draws nothing again with %o', (env) => {
  const { lines } = shownOn(80, env)
  expect(lines).toContain('train: 4/20 steps  reward 0.200')
  expect(lines.length).toBeLessThan(20)
})

/** Lines of a log. */
function logged(all: readonly RunEvent[]): string[] {
  const written: string[] = []
  const stream = { isTTY: false, write: (text: string) => written.push(text) }
  const display = createRunDisplay({ stream: stream as unknown as NodeJS.WriteStream, json: false, env: { NO_COLOR: '1' } })
  for (const event of all) display.show(event)
  display.close()
  return written.join('').split('\n')
}

const stepEnd = (step: number, steps: number): RunEvent => ({
  type: 'step-end',
  at,
  step,
  steps,
  weightVersion: step,
  metrics: { rewardMean: 0.5 },
})

it('shows the last step of a trainer that tells of it after the evaluation that it ends with', () => {
  const lines = logged([
    { type: 'step-start', at, step: 1, steps: 2 },
    stepEnd(1, 2),
    { type: 'step-start', at, step: 2, steps: 2 },
    { type: 'evaluation-start', at, name: 'test', rollouts: 1 },
    { type: 'evaluation-end', at, name: 'test', step: 2, metrics: { reward: 1, rollouts: 1 } },
    stepEnd(2, 2),
  ])
  expect(lines).toContain('train: 2/2 steps  reward 0.500')
})

it('names no number of steps where none is known', () => {
  expect(logged([stepEnd(1, 0), stepEnd(2, 0)])).toEqual(['train: 1 steps  reward 0.500', 'train: 2 steps  reward 0.500', ''])
})

it('says of an evaluation why rollouts failed', () => {
  const failures = [{ code: 'REWARD_FAILED', count: 3, rollout: 'evaluation/eval/0/1', message: 'No unit.', source: '/p/reward.ts:7' }]
  const metrics = { reward: 0.25, rollouts: 8, failed: 3, unscored: 1 }
  expect(logged([{ type: 'evaluation-end', at, name: 'eval', step: 0, metrics, failures }])).toEqual([
    'eval: reward 0.250 on 8 rollouts, 3 failed, 1 not scored',
    'failed   3 of REWARD_FAILED at /p/reward.ts:7, first evaluation/eval/0/1: No unit.',
    '',
  ])
})

it('says of how many tasks the reward of an evaluation is', () => {
  const counts = { tasks: 36, rollouts: 36, failed: 17, countedTasks: 19, countedRollouts: 19 }
  const [line] = logged([
    { type: 'evaluation-end', at, name: 'after', step: 4, metrics: { reward: 0.306, low: 0.2, high: 0.4, ...counts } },
  ])
  expect(line).toContain('after: reward 0.306 [0.200, 0.400] on 19 of 36 tasks, 19 of 36 rollouts, 17 failed')
})
