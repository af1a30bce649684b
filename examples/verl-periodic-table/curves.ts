import type { RunReport } from 'aworld-train'

/** What of a report stands in the table. */
export type Run = Pick<RunReport, 'curve' | 'before' | 'after'>

const bar = (reward: number) => '▁▂▃▄▅▆▇█'[Math.min(7, Math.max(0, Math.floor(reward * 8)))]!
const number = (value: number | undefined) => (value === undefined ? '—' : value.toFixed(2))

/** Rewards of two runs, step by step, with the held-out reward before and after; a step that a run lacks is shown as missing. */
export function besideEachOther(runs: Readonly<Record<string, Run>>): string {
  const names = Object.keys(runs)
  const width = Math.max(10, ...names.map((name) => name.length)) + 2
  const line = (label: string, cells: readonly string[]) =>
    [label.padEnd(10), ...cells.map((cell) => cell.padStart(width))].join('').trimEnd()
  const steps = [...new Set(Object.values(runs).flatMap(({ curve }) => curve.map(({ step }) => step)))].sort((a, b) => a - b)
  const rewardRow = (read: (run: Run) => number | undefined) => names.map((name) => number(read(runs[name]!)))
  return [
    line('', names),
    line(
      'before',
      rewardRow(({ before }) => before?.reward),
    ),
    ...steps.map((step) =>
      line(
        `step ${step}`,
        rewardRow(({ curve }) => curve.find((point) => point.step === step)?.reward),
      ),
    ),
    line(
      'after',
      rewardRow(({ after }) => after?.reward),
    ),
    '',
    ...names.map((name) => `${name.padEnd(10)}${runs[name]!.curve.map(({ reward }) => bar(reward)).join('')}`),
  ].join('\n')
}
