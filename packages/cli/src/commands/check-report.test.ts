import { PassThrough } from 'node:stream'
import type { DoctorCheck } from 'aworld-train'
import { describe, expect, it } from 'vitest'
import { createCheckReport } from './check-report.ts'

const checks: readonly DoctorCheck[] = [
  { name: 'python', ok: true, message: '3.11.7' },
  { name: 'shared memory', ok: true, warning: true, message: '0.1 GiB free\nRay wants 4.8 GiB' },
  { name: 'config', ok: false, message: 'data.n is no key' },
]

function show(shown: readonly DoctorCheck[], json = false) {
  const output = new PassThrough()
  const report = createCheckReport({ json, output })
  report.add(...shown)
  const early = String(output.read() ?? '')
  return { early, problems: report.end(), text: early + String(output.read() ?? '') }
}

const plain = (text: string) => text.replaceAll(/\u001b\[\d+m/g, '')

describe('createCheckReport', () => {
  it('shows checks as they are found, lines of a message below each other, and a verdict', () => {
    const { early, problems, text } = show(checks)
    expect(problems).toBe(1)
    expect(early).toContain('data.n is no key')
    expect(plain(text)).toMatchInlineSnapshot(`
      "ok      python         3.11.7
      warning shared memory  0.1 GiB free
                             Ray wants 4.8 GiB
      problem config         data.n is no key

      1 problem, 1 warning
      "
    `)
  })

  it('has no problem where there are but warnings', () => {
    expect(show(checks.slice(0, 2))).toMatchObject({ problems: 0, text: expect.stringMatching(/\nno problems, 1 warning\n$/) })
    expect(show([]).text).toBe('\nno problems\n')
  })

  it('breaks lines at spaces where a terminal would cut words', () => {
    const output = Object.assign(new PassThrough(), { columns: 40 })
    const message = 'only the first of these words fits here\nand the second line has its own'
    createCheckReport({ json: false, output }).add({ name: 'python', ok: true, message })
    expect(`\n${plain(String(output.read()))}`).toMatchInlineSnapshot(`
      "
      ok      python         only the first of
                             these words fits
                             here
                             and the second
                             line has its own
      "
    `)
  })

  it('--json prints one object, at the end', () => {
    const { early, text } = show(checks, true)
    expect(early).toBe('')
    expect(JSON.parse(text)).toEqual({ problems: 1, warnings: 1, checks })
  })
})
