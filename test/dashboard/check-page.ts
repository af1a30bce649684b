import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { expect } from 'vitest'
import type { Watched } from './browser.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
/** Where pictures of the pages go, for a person to look at; none are taken without. */
export const pictures = process.env['AWORLD_TRAIN_PICTURES']

/** Which rules of axe are checked. */
export type Rules = 'all' | 'colours' | 'none'

interface Shift {
  /** Milliseconds since the page began. */
  readonly at: number
  readonly value: number
  readonly moved: readonly string[]
}

/** The shift of a page as browsers count it: the most in five seconds, of shifts less than a second apart. A page may be open for long. */
function mostShifted(shifts: readonly Shift[]): number {
  let [most, sum, start, last] = [0, 0, Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const { at, value } of shifts) {
    if (at - last >= 1_000 || at - start >= 5_000) [sum, start] = [0, at]
    sum += value
    last = at
    most = Math.max(most, sum)
  }
  return most
}

/** Everything that must hold of a page that is on screen. */
export async function check(name: string, { page, problems }: Watched, rules: Rules = 'all'): Promise<void> {
  // Through the debugger's own context, so that the page's policy stays as it is.
  const session = await page.context().newCDPSession(page)
  const evaluate = async (expression: string) => {
    const { result, exceptionDetails } = await session.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true })
    if (exceptionDetails) throw new Error(`${name}: ${exceptionDetails.exception?.description ?? exceptionDetails.text}`)
    return result.value as unknown
  }
  if (rules !== 'none') await evaluate(axe)
  const options = `{ resultTypes: ['violations']${rules === 'colours' ? ", runOnly: ['color-contrast']" : ''} }`
  const violations =
    rules === 'none'
      ? []
      : await evaluate(
          `axe.run(document, ${options}).then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes[0].html.slice(0, 200) + ' ' + (nodes[0].failureSummary ?? '').slice(0, 200)))`,
        )
  const state = (await evaluate(
    '({ shifts: window.shifts, harmed: window.harmed ?? null, width: document.documentElement.scrollWidth })',
  )) as {
    readonly shifts: readonly Shift[]
    readonly harmed: unknown
    readonly width: number
  }
  await session.detach()
  const shift = mostShifted(state.shifts)
  expect({
    name,
    violations,
    problems,
    harmed: state.harmed,
    // A phone makes its own width that of the page.
    isWider: state.width > page.viewportSize()!.width,
    shifted: shift > 0.01 ? [shift, ...state.shifts] : [],
  }).toEqual({
    ...{ name, violations: [], problems: [], harmed: null, isWider: false, shifted: [] },
  })
}
