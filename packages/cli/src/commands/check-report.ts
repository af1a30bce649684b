import { styleText } from 'node:util'
import type { DoctorCheck } from 'aworld-train'

export interface CheckReport {
  /** Shows checks as they are found. */
  add(...checks: readonly DoctorCheck[]): void
  /** Shows the verdict; returns the number of problems. */
  end(): number
}

/** One line a check and a verdict, or one JSON object `{problems, warnings, checks}` at the end. */
export function createCheckReport({ json, output }: { readonly json: boolean; readonly output: NodeJS.WritableStream }): CheckReport {
  const all: DoctorCheck[] = []
  return {
    add(...checks) {
      all.push(...checks)
      if (!json) for (const check of checks) output.write(`${toLine(check)}\n`)
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

function toLine({ name, ok, warning, message }: DoctorCheck): string {
  const mark = !ok ? styleText('red', 'problem') : warning ? styleText('yellow', 'warning') : styleText('green', 'ok     ')
  return `${mark} ${name.padEnd(14)} ${message.replaceAll('\n', `\n${' '.repeat(23)}`)}`
}

const count = (number: number, noun: string) => `${number} ${noun}${number === 1 ? '' : 's'}`
