// @module-tag quick
import { join } from 'node:path'
import { openDashboard } from '@aworld-train/dashboard'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type WrittenRun, writeRun } from '../../packages/dashboard/src/testing/write-run.ts'
import { looks, openBrowser, visit, watch } from './browser.ts'
import { check, pictures } from './check-page.ts'

let browser: Browser
let run: WrittenRun
beforeAll(async () => {
  browser = await openBrowser()
  run = await writeRun({ name: 'policies', hasReader: true })
})
afterAll(async () => {
  await browser?.close()
  await run?.[Symbol.asyncDispose]()
})

it.each([
  [looks.light, 'all'],
  [looks.darkNarrow, 'all'],
] as const)('shows what belongs to which policy and role at %o', async (look, rules) => {
  const dashboard = await openDashboard({ runs: [run.path] })
  try {
    const watched = await watch(browser, dashboard.url, look)
    const { page } = watched
    const shown = async (name: string, hash: string) => {
      await visit(watched, hash)
      if (pictures) await page.screenshot({ path: join(pictures, `policies-${name}-${look.width}-${look.theme}.png`), fullPage: true })
      await check(`policies ${name} ${look.width} ${look.theme}`, watched, rules)
    }
    await shown('overview', `#/${run.id}`)
    await page.getByText('helper: reward').first().waitFor()
    expect(await page.locator('.ledger .plain tbody tr').allInnerTexts()).toEqual([
      expect.stringMatching(/^helper\s+reader\s/),
      expect.stringMatching(/^solver\s+policy\s/),
    ])
    await shown('step', `#/${run.id}/step/2`)
    const rows = await page.locator('table.plain tbody tr').all()
    expect(await Promise.all(rows.map((row) => row.locator('th, td').allTextContents()))).toEqual([
      ['solver policy', '0.700', '1', '8', '12.5 %', '12.5'],
      ['helper reader', '0.200', '0', '4', '50.0 %', '4.0'],
    ])
    await shown('tokens', `#/${run.id}/tokens/train/1/0/0?invocation=helper`)
    await watched.context.close()
  } finally {
    await dashboard.close()
  }
})
