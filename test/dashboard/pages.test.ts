// @module-tag quick
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { exportRun, openDashboard } from '@aworld-train/dashboard'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hostile, nameWith, type WrittenRun, writeRun } from '../../packages/dashboard/src/testing/write-run.ts'
import { load, looks, openBrowser, visit, watch } from './browser.ts'
import { check, pictures } from './check-page.ts'

let browser: Browser
let saved: WrittenRun
let live: WrittenRun
beforeAll(async () => {
  browser = await openBrowser()
  saved = await writeRun({ name: 'saved', text: hostile })
  live = await writeRun({ name: 'live', isLive: true, text: hostile })
})
afterAll(async () => {
  await browser?.close()
  await saved?.[Symbol.asyncDispose]()
  await live?.[Symbol.asyncDispose]()
})

/** In an order in which no two that follow each other differ in a filter alone: what a filter changes moves. */
const pages = (run: string, hasAfter: boolean): Readonly<Record<string, string>> => ({
  runs: '#/',
  overlay: `#/?with=${run}`,
  overview: `#/${run}`,
  groups: `#/${run}/step/2`,
  nothing: `#/${run}/step/1?show=nothing`,
  'held-out': `#/${run}/step/test`,
  rollout: `#/${run}/rollout/train/1/0/0`,
  compare: `#/${run}/compare/train/1/0/0?with=train%2F1%2F0%2F1`,
  helper: `#/${run}/tokens/train/1/0/0?invocation=${encodeURIComponent(nameWith('helper', hostile))}`,
  failed: `#/${run}/rollout/train/2/0/1`,
  attempts: `#/${run}/rollout/train/2/1/1`,
  ...(hasAfter ? {} : { running: `#/${run}/rollout/train/3/0/0` }),
  tokens: `#/${run}/tokens/train/1/0/0`,
  advantage: `#/${run}/tokens/train/1/0/1?by=advantage`,
  gap: `#/${run}/tokens/train/1/0/0?by=gap`,
  origin: `#/${run}/tokens/train/1/0/0?by=origin`,
  'compare-helper': `#/${run}/compare/train/1/0/0?with=train%2F1%2F0%2F1&invocation=${encodeURIComponent(nameWith('helper', hostile))}`,
  health: `#/${run}/health`,
  'no-step': `#/${run}/step/99`,
  'no-rollout': `#/${run}/rollout/train/99/0/0`,
  'no-page': `#/${run}/what`,
  'no-run': '#/elsewhere',
})

/** Whoever cannot see a page depends on its markup, which is the same in every look, and on its colours, which differ. */
const looksOf = {
  saved: [
    { ...looks.light, rules: 'all' },
    { ...looks.dark, rules: 'colours' },
    { ...looks.darkNarrow, rules: 'none' },
  ],
  live: [
    { ...looks.light, rules: 'none' },
    { ...looks.narrow, rules: 'all' },
  ],
  exported: [
    { ...looks.dark, rules: 'none' },
    { ...looks.darkNarrow, rules: 'all' },
  ],
} as const

describe.each(['saved', 'live', 'exported'] as const)('a run that is %s', (kind) => {
  let home: string
  let close: () => Promise<void> = async () => {}
  beforeAll(async () => {
    const run = kind === 'live' ? live : saved
    if (kind === 'exported') {
      const file = join(saved.below, 'run.html')
      await exportRun([saved.path], file)
      home = pathToFileURL(file).href
    } else {
      const dashboard = await openDashboard({ runs: [run.path] })
      home = dashboard.url
      close = () => dashboard.close()
    }
  })
  afterAll(() => close())

  it.each(looksOf[kind])('shows every page at $width pixels, $theme', async (look) => {
    const run = kind === 'live' ? live.id : saved.id
    const watched = await watch(browser, home, look)
    for (const [name, hash] of Object.entries(pages(run, kind !== 'live'))) {
      if (look.rules === 'all') await load(watched, home, hash)
      else await visit(watched, hash)
      if (pictures)
        await watched.page.screenshot({ path: join(pictures, `${kind}-${name}-${look.width}-${look.theme}.png`), fullPage: true })
      await check(`${kind} ${name}`, watched, look.rules)
    }
    await watched.context.close()
  })

  it('leads from findings, numbers and errors to what they are about', async () => {
    const run = kind === 'live' ? live.id : saved.id
    const watched = await watch(browser, home, looks.light)
    const { page } = watched
    const links = new Set<string>()
    for (const hash of [`#/${run}`, `#/${run}/health`]) {
      await visit(watched, hash)
      expect(await page.locator('.notices li.warn:not(:has(a))').allInnerTexts()).toEqual([])
      const gap = page.locator('.notices li', { hasText: 'Sampler and trainer disagree' })
      if (hash === `#/${run}`) expect(await gap.locator('a').getAttribute('href')).toBe(`#/${run}/step/2`)
      for (const link of await page.locator('main a').all()) links.add((await link.getAttribute('href'))!)
    }
    const deadEnds: string[] = []
    for (const link of links) {
      await visit(watched, link)
      for (const title of await page.locator('.empty :is(h1, h2)').allTextContents()) deadEnds.push(`${link}: ${title}`)
    }
    expect([...links].filter((link) => /\/rollout\/train\/2\/0\/1$/.test(link))).toHaveLength(1)
    expect([deadEnds, watched.problems]).toEqual([[], []])
    await watched.context.close()
  })
})
