import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { RunReport } from '@aworld-train/core'
import { type Spread, spreadOf } from '../suite.ts'
import { drawCurves } from '../trainers/draw-curves.ts'
import type { Trained } from './trained.ts'

const [begin, end] = ['<!-- Numbers, written by `npm run bench -- swarm`: -->', '<!-- : numbers -->']

/** Draws the curves of all variants but those of the reader's own reward, and puts the table into the guide. */
export async function writePage(root: string, trained: readonly Trained[], notes: readonly string[]): Promise<void> {
  const curves = trained.filter(({ name }) => !name.startsWith('own-')).map(toCurve)
  await writeFile(join(root, 'bench/results/swarm.svg'), drawCurves(curves, 'Reward of planner and readers, by what is trained'))
  const guide = join(root, 'docs/3.guides/source-readers.md')
  const [before, rest = ''] = (await readFile(guide, 'utf8')).split(begin)
  const picture = '![Mean reward of each step, by what is trained](../../bench/results/swarm.svg)'
  const lines = [...tableOf(trained), '', ...notes.map((note) => `- ${note}`), '', picture]
  await writeFile(guide, `${before}${begin}\n\n${lines.join('\n')}\n\n${end}${rest.split(end)[1] ?? ''}`)
}

/** The mean over seeds. */
const toCurve = ({ title, reports }: Trained) => ({
  name: title,
  rewards: reports[0]!.curve.map((_, step) => mean(reports.map(({ curve }) => curve[step]?.reward ?? Number.NaN))),
  before: mean(reports.map(({ before }) => before?.reward ?? Number.NaN)),
  after: mean(reports.map(({ after }) => after?.reward ?? Number.NaN)),
})

function tableOf(trained: readonly Trained[]): string[] {
  const ours = spreadOf(trained[0]!.reports.map(({ after }) => after?.reward ?? Number.NaN)).median
  const rows = trained.map(({ title, reports }) => {
    const spread = (value: (report: RunReport) => number | undefined) => spreadOf(reports.map((report) => value(report) ?? Number.NaN))
    const after = spread((report) => report.after?.reward)
    return [
      title,
      `${reports.length}`,
      shown(spread((report) => report.before?.reward)),
      shown(spread((report) => report.greedyBefore?.reward)),
      shown(after),
      (after.median / ours).toFixed(2),
      shown(spread((report) => report.greedyAfter?.reward)),
      `${spread(({ times }) => times.wallMs / 1000).median.toFixed(0)} s`,
      `${spread(({ times }) => times.cpuMs / 1000).median.toFixed(0)} s`,
    ]
  })
  const head = ['', 'seeds', 'before', 'greedy before', 'after', 'ratio', 'greedy after', 'wall', 'CPU']
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`)
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
const shown = ({ median, min, max }: Spread) => `${median.toFixed(3)} (${min.toFixed(3)} to ${max.toFixed(3)})`
