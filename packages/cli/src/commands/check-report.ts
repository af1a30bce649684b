import { styleText } from 'node:util'
import type { DoctorCheck } from 'aworld-train'
import { wrapLabelled } from '../terminal/text-width.ts'

export interface CheckReport {
  /** Shows checks as they are found. */
  add(...checks: readonly DoctorCheck[]): void
  /** Shows the verdict; returns the number of problems. */
  end(): number
}

export interface CheckReportOptions {
  readonly json: boolean
  readonly output: NodeJS.WritableStream & { readonly columns?: number }
}

/** Shows one line for each check and a verdict, or one JSON object `{problems, warnings, checks}` at the end. */
export function createCheckReport({ json, output }: CheckReportOptions): CheckReport {
  const all: DoctorCheck[] = []
  return {
    add(...checks) {
      all.push(...checks)
      if (!json) for (const check of checks) output.write(`${toLine(check, output.columns)}\n`)
    },
    end() {
      const problems = all.filter(({ ok }) => !ok).length
      const warnings = all.filter(({ warning }) => warning).length
      if (json) output.write(`${JSON.stringify({ problems, warnings, checks: all }, null, 2)}\n`)
      else
        output.write(
          `\n${[problems === 0 ? 'no problems' : count(problems, 'problem'), ...(warnings ? [count(warnings, 'warning')] : [])].join(', ')}\n`,
        )
      return problems
    },
  }
}

/** Columns of a check's mark and name. */
const labelWidth = 23

function toLine({ name, ok, warning, message }: DoctorCheck, columns: number | undefined): string {
  const mark = !ok ? styleText('red', 'problem') : warning ? styleText('yellow', 'warning') : styleText('green', 'ok     ')
  const lines = `${mark} ${name.padEnd(14)} ${message.replaceAll('\n', `\n${' '.repeat(labelWidth)}`)}`
  return columns === undefined
    ? lines
    : lines
        .split('\n')
        .map((line) => wrapLabelled(line, columns, labelWidth))
        .join('\n')
}

const count = (number: number, noun: string) => `${number} ${noun}${number === 1 ? '' : 's'}`
