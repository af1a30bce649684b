import type { CommandResult } from '@aworld-train/core'
import { z } from 'zod'
import { fenced } from '../../documents/markdown.ts'
import { answerFormat } from '../../tool-server.ts'

export const timeoutSeconds = z.number().min(1).max(600).default(30).describe('Seconds after which it is ended.')

/** Bash's exit code for a program that SIGXCPU ended. */
const endedByCpuTime = 152

/** The end of a command in a tool's answer. */
export const commandAnswer = z.object({
  format: answerFormat,
  exit_code: z.int(),
  output: z.string(),
  omitted_bytes: z.int(),
  timed_out: z.boolean(),
  timeout: z.number(),
})

export type CommandAnswer = z.output<typeof commandAnswer>

export function toCommandAnswer(result: CommandResult, timeout: number, format: CommandAnswer['format']): CommandAnswer {
  const { exitCode, output, omittedBytes, timedOut } = result
  return { format, exit_code: exitCode, output, omitted_bytes: omittedBytes, timed_out: timedOut, timeout }
}

/** The text about a command: its output, its end, and what is missing. */
export function commandText(answer: CommandAnswer): string {
  const { format, ...facts } = answer
  if (format === 'json') return JSON.stringify(facts)
  const { output, exit_code, omitted_bytes, timed_out, timeout } = facts
  const remarks = [`Exit code ${exit_code}.`]
  if (timed_out) remarks.push(`It was ended after ${timeout} s; a larger timeout lets it run longer.`)
  if (exit_code === endedByCpuTime) remarks.push('It was ended: it had used the CPU time that one process may use here.')
  if (omitted_bytes > 0)
    remarks.push(`${omitted_bytes} bytes in the middle of its output are left out; write it to a file and read that in parts.`)
  const shown = output === '' ? [] : [format === 'markdown' ? fenced(output) : output.replace(/\n$/, '')]
  return [...shown, `[${remarks.join(' ')}]`].join('\n\n')
}
