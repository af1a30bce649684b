import type { CellOutcome, EvaluationCell, EvaluationTask, EvaluationView } from '@aworld-train/core'
import { expect, it } from 'vitest'
import { matchesCell, partners, taskRows } from './task-rows.ts'

/** Rollouts of a task, by a letter each: right, wrong, partly, failed, waiting. */
function toTask(id: string, letters: string, hash = id): EvaluationTask {
  const names: Readonly<Record<string, readonly [CellOutcome, number | null]>> = {
    r: ['right', 1],
    w: ['wrong', 0],
    p: ['partly', 0.5],
    f: ['failed', null],
    '.': ['waiting', null],
  }
  const cells = [...letters].map((letter, sample): EvaluationCell => {
    const [outcome, reward] = names[letter]!
    const reason = outcome === 'waiting' ? null : outcome === 'failed' ? 'WORKER_LOST' : 'completed'
    return { rollout: `${id}/${sample}`, sample, outcome, reward, reason, tools: sample === 0 ? ['lookup'] : [] }
  })
  const rewards = cells.flatMap(({ reward }) => reward ?? [])
  const mean = rewards.length === 0 ? null : rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length
  return { id, hash, kind: 'sum', question: id, answer: null, mean, cells }
}
const toView = (...tasks: readonly EvaluationTask[]) => ({ tasks }) as unknown as EvaluationView
const ids = (rows: ReturnType<typeof taskRows>) => rows.map(({ task }) => task.id)

it('puts tasks first whose samples disagree, then what failed, then what is wrong', () => {
  const view = toView(toTask('right', 'rr'), toTask('none', '..'), toTask('wrong', 'ww'), toTask('mixed', 'rw'), toTask('failed', 'rf'))
  expect(ids(taskRows([view], 'differs'))).toEqual(['mixed', 'failed', 'none', 'wrong', 'right'])
  expect(ids(taskRows([view], 'dataset'))).toEqual(['right', 'none', 'wrong', 'mixed', 'failed'])
})

it('pairs tasks of two evaluations by their hash, also one that is there twice, and puts the greatest change first', () => {
  const ours = toView(
    toTask('same', 'rw'),
    toTask('fell', 'ww'),
    toTask('alone', 'rr'),
    toTask('twice', 'rr'),
    toTask('again', 'rr', 'twice'),
  )
  const theirs = toView(toTask('fell', 'rr'), toTask('renamed', 'rw', 'same'), toTask('twice', 'pp'), toTask('other', 'ff'))
  const rows = taskRows([ours, theirs], 'differs')
  expect(rows.map(({ task, sides, change }) => [task.id, sides.map((side) => side?.id ?? null), change])).toEqual([
    ['fell', ['fell', 'fell'], -1],
    ['twice', ['twice', 'twice'], 0.5],
    ['same', ['same', 'renamed'], 0],
    ['other', [null, 'other'], null],
    ['alone', ['alone', null], null],
    ['again', ['again', null], null],
  ])
})

it.each([
  ['rwr', ['t/0', 't/1']],
  ['rr', ['t/0', 't/1']],
  ['r.', null],
  ['..', null],
])('compares two ended samples of %s, with other rewards if there are such', (letters, expected) => {
  const [row] = taskRows([toView(toTask('t', letters))], 'differs')
  const pair = partners(row!)
  expect(pair && [pair[1], pair[3]]).toEqual(expected)
})

it('compares samples of two evaluations that have the same keys', () => {
  const row = (ours: string, theirs: string) => taskRows([toView(toTask('t', ours)), toView(toTask('t', theirs))], 'differs')[0]!
  expect(partners(row('rr', 'rw'))).toEqual([0, 't/0', 1, 't/1'])
  expect(partners(row('ww', 'rr'))).toEqual([0, 't/0', 1, 't/0'])
  expect(partners(row('rr', 'rr'))).toEqual([0, 't/0', 1, 't/0'])
  expect(partners(row('rr', '..'))).toBeNull()
})

it('wants one rollout to have all that a filter names', () => {
  const [first, second] = toTask('t', 'rf').cells
  const filter = { outcome: 'right', reason: 'completed', tool: 'lookup' }
  expect([matchesCell(first!, filter), matchesCell(second!, filter)]).toEqual([true, false])
  expect(matchesCell(second!, { outcome: null, reason: 'WORKER_LOST', tool: null })).toBe(true)
})
