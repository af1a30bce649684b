import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { expect } from 'vitest'
import type { Watched } from './browser.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
/** Where pictures of the pages go, for a person to look at; none are taken without. */
export const pictures = process.env['AWORLD_TRAIN_PICTURES']

/** Which rules of axe are checked. */
export type Rules = 'all' | 'colours' | 'none'

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
    '({ shift: window.shift, shifted: window.shifted, harmed: window.harmed ?? null, width: document.documentElement.scrollWidth })',
  )) as {
    readonly shift: number
    readonly shifted: readonly string[]
    readonly harmed: unknown
    readonly width: number
  }
  await session.detach()
  expect({
    name,
    violations,
    problems,
    harmed: state.harmed,
    // A phone makes its own width that of the page.
    isWider: state.width > page.viewportSize()!.width,
    shifted: state.shift > 0.01 ? [state.shift, ...state.shifted] : [],
  }).toEqual({
    ...{ name, violations: [], problems: [], harmed: null, isWider: false, shifted: [] },
  })
}
