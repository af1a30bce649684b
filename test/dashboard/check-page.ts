import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { expect } from 'vitest'
import type { Watched } from './browser.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
/** Where pictures of the pages go, for a person to look at; none are taken without. */
export const pictures = process.env['AWORLD_TRAIN_PICTURES']

/** Everything that must hold of a page that is on screen. */
export async function check(name: string, { page, problems }: Watched): Promise<void> {
  // Through the debugger's own context, so that the page's policy stays as it is.
  const session = await page.context().newCDPSession(page)
  const evaluate = async (expression: string) => {
    const { result, exceptionDetails } = await session.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true })
    if (exceptionDetails) throw new Error(`${name}: ${exceptionDetails.exception?.description ?? exceptionDetails.text}`)
    return result.value as unknown
  }
  await evaluate(axe)
  const violations = await evaluate(
    `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes[0].html.slice(0, 200) + ' ' + (nodes[0].failureSummary ?? '').slice(0, 200)))`,
  )
  const state = (await evaluate(
    '({ shift: window.shift, shifted: window.shifted, harmed: window.harmed ?? null, over: document.documentElement.scrollWidth - innerWidth })',
  )) as {
    readonly shift: number
    readonly shifted: readonly string[]
    readonly harmed: unknown
    readonly over: number
  }
  await session.detach()
  expect({
    name,
    violations,
    problems,
    harmed: state.harmed,
    isWider: state.over > 0,
    shifted: state.shift > 0.01 ? [state.shift, ...state.shifted] : [],
  }).toEqual({
    ...{ name, violations: [], problems: [], harmed: null, isWider: false, shifted: [] },
  })
}
