import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { EvaluationReport, type EvaluationView } from '@aworld-train/core'
import { expect, it } from 'vitest'
import { createEmbeddedClient } from './embedded-client.ts'
import type { ExportedComparison, ExportedRun } from './export-data.ts'
import { exportRun } from './export-run.ts'
import { openFolder } from './folder-client.ts'
import { createHttpRuns } from './http-client.ts'
import { listRun } from './list-runs.ts'
import { openDashboard } from './open-dashboard.ts'
import { writeEvaluation } from './testing/write-evaluation.ts'
import { hostile, writeRun } from './testing/write-run.ts'

const plain = (value: unknown) => JSON.parse(JSON.stringify(value)) as unknown
const marks = { right: 'r', partly: 'p', wrong: 'w', failed: 'f', unscored: 'u', running: '+', waiting: '.' }
const letters = ({ tasks }: EvaluationView) => tasks.map(({ cells }) => cells.map(({ outcome }) => marks[outcome]).join(''))

it('answers alike from a folder, over HTTP and from an exported file, and compares as the report does', async () => {
  await using older = await writeEvaluation({ name: 'older', tasks: 10, text: hostile })
  await using newer = await writeEvaluation({ name: 'newer', tasks: 12, text: hostile, worse: (task) => task === 5, against: older })
  await using training = await writeRun()
  const folder = await openFolder(newer.path)
  const dashboard = await openDashboard({ runs: [newer.path, older.path, training.path] })
  try {
    const file = join(newer.below, 'runs.html')
    await exportRun([newer.path, older.path], file)
    const html = await readFile(file, 'utf8')
    const textOf = (id: string) => new RegExp(`id="${id}">([^<]*)<`).exec(html)![1]!
    const { runs, comparisons } = JSON.parse(textOf('data')) as { runs: ExportedRun[]; comparisons: ExportedComparison[] }
    const { origin, searchParams } = new URL(dashboard.url)
    const http = createHttpRuns(origin, searchParams.get('token')!)
    const view = (await folder.evaluation())!
    expect(await http.run(newer.id).evaluation()).toEqual(plain(view))
    expect(await createEmbeddedClient(runs[0]!, (part) => textOf(`part-${part}`)).evaluation()).toEqual(plain(view))
    expect(await http.run(training.id).evaluation()).toBeNull()
    expect(letters(view)).toEqual(['rrrr', 'wwww', 'wrwr', 'pppp', 'rrrf', 'wwww', 'wwww', 'wrwr', 'pppp', 'rrrf', 'rrrr', 'wwww'])
    const report = EvaluationReport.parse(JSON.parse(await readFile(join(newer.path, 'report.json'), 'utf8')))
    expect(report).toMatchObject({ ...view.numbers, comparison: view.comparison, times: { wallMs: view.wallMs } })
    expect(view.comparison).toMatchObject({ better: 0, worse: 1, equal: 9, worst: { taskId: 't-5', from: 1, to: 0 } })
    const compared = { comparison: plain(view.comparison), problem: null }
    expect(await http.compare(newer.id, older.id)).toEqual(compared)
    expect(comparisons.find(({ first }) => first === newer.id)).toMatchObject(compared)
    expect(await http.compare(older.id, newer.id)).toMatchObject({ comparison: { better: 1, worse: 0 } })
    expect((await http.compare(newer.id, training.id)).problem).toMatch(/is no evaluation; choose two evaluations/)
    await expect(http.compare(newer.id, 'elsewhere')).rejects.toThrow('There is no run "elsewhere".')
  } finally {
    await dashboard.close()
    folder.close()
  }
})

it('has every task from the start, fills cells as rollouts end, and reads again what runs again', async () => {
  await using run = await writeEvaluation({ tasks: 5, ended: 0 })
  const folder = await openFolder(run.path)
  try {
    const read = async () => (await folder.evaluation())!
    const begun = await read()
    expect(letters(begun)).toEqual(Array(5).fill('....'))
    expect(begun.numbers).toMatchObject({ tasks: 5, rollouts: 20, notStarted: 20, reward: null, bounds: null, cost: 0 })
    expect(begun.tasks.map(({ kind }) => kind)).toEqual(['lookup', 'sum', 'reading', 'lookup', 'sum'])
    await run.end(6)
    const running = await read()
    expect(letters(running)).toEqual(['rrrr', 'ww+.', '....', '....', '....'])
    expect(running.numbers).toMatchObject({ reward: 0.5, notStarted: 14, scored: { tasks: 2, rollouts: 6 } })
    // The two that count are 1 and 0, and fourteen of twenty are open.
    expect(running.numbers.bounds).toEqual([0.2, 0.9])
    expect(listRun('run', run.path)).toMatchObject({ status: 'running', after: 0.5 })
    await run.end(14)
    const failed = await read()
    expect(letters(failed)).toEqual(['rrrr', 'wwww', 'wrwr', 'pppp', 'rrrf'])
    // A rollout that failed counts in no mean, neither in the list nor on the page.
    expect([failed.numbers.reward, listRun('run', run.path).after]).toEqual([0.6, 0.6])
    expect(failed.tasks[4]!.cells[3]).toMatchObject({ reason: 'FROZEN_MODEL_FAILED', reward: null, tools: ['browser'] })
    await run.store.reopen(['evaluation/eval/4/3'])
    expect(letters(await read())[4]).toBe('rrr.')
  } finally {
    folder.close()
  }
})

it('keeps the rewards of an evaluation whose calls are damaged, and counts these as unseen', async () => {
  await using run = await writeEvaluation({ tasks: 5, hasTokens: true })
  const segments = join(run.path, 'segments')
  for (const name of await readdir(segments))
    await writeFile(join(segments, name), Buffer.alloc((await stat(join(segments, name))).size, 7))
  const folder = await openFolder(run.path)
  try {
    const view = (await folder.evaluation())!
    expect(letters(view)).toEqual(['rrrr', 'wwww', 'wrwr', 'pppp', 'rrrf'])
    expect(view.numbers).toMatchObject({ reward: 0.6, failed: 1, unseen: 19 })
    expect(await exportRun([run.path], join(run.below, 'run.html'))).toMatchObject({ rollouts: 20, whole: 0, damaged: 20 })
  } finally {
    folder.close()
  }
})
