// @module-tag quick
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { exportRun, openDashboard } from '@aworld-train/dashboard'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hostile, type WrittenRun, writeRun } from '../../packages/dashboard/src/testing/write-run.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
/** Where pictures of the pages go, for a person to look at; none are taken without. */
const pictures = process.env['AWORLD_TRAIN_PICTURES']

let browser: Browser
let saved: WrittenRun
let live: WrittenRun
beforeAll(async () => {
  browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: process.getuid?.() === 0 ? ['--no-sandbox'] : [] })
  saved = await writeRun({ name: 'saved', text: hostile })
  live = await writeRun({ name: 'live', isLive: true, text: hostile })
})
afterAll(async () => {
  await browser?.close()
  await saved?.[Symbol.asyncDispose]()
  await live?.[Symbol.asyncDispose]()
})

const pages = (run: string, hasAfter: boolean): Readonly<Record<string, string>> => ({
  runs: '#/',
  overlay: `#/?with=${run}`,
  overview: `#/${run}`,
  groups: `#/${run}/step/2`,
  nothing: `#/${run}/step/1?show=nothing`,
  'held-out': `#/${run}/step/test`,
  rollout: `#/${run}/rollout/train/1/0/0`,
  failed: `#/${run}/rollout/train/2/0/1`,
  ...(hasAfter ? {} : { running: `#/${run}/rollout/train/3/0/0` }),
  tokens: `#/${run}/tokens/train/1/0/0`,
  advantage: `#/${run}/tokens/train/1/0/1?by=advantage`,
  gap: `#/${run}/tokens/train/1/0/0?by=gap`,
  origin: `#/${run}/tokens/train/1/0/0?by=origin`,
  helper: `#/${run}/tokens/train/1/0/0?agent=helper`,
  compare: `#/${run}/compare/train/1/0/0?with=train%2F1%2F0%2F1`,
  health: `#/${run}/health`,
  'no-step': `#/${run}/step/99`,
  'no-rollout': `#/${run}/rollout/train/99/0/0`,
  'no-page': `#/${run}/what`,
  'no-run': '#/elsewhere',
})

/** Runs in the page: adds up how far things moved by themselves, and what moved. */
const countShifts = `
  window.shift = 0
  window.shifted = []
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      if (entry.hadRecentInput) continue
      window.shift += entry.value
      window.shifted.push(...entry.sources.map(({ node }) => node?.className ?? ''))
    }
  }).observe({ type: 'layout-shift', buffered: true })
`

interface Watched {
  readonly context: BrowserContext
  readonly page: Page
  /** What no page may do, as it happened. */
  readonly problems: string[]
}

/** A browser page that notes errors, requests to other hosts and refusals of the content security policy. */
async function watch(home: string, look: { width: number; theme: 'light' | 'dark' }): Promise<Watched> {
  const isNarrow = look.width < 760
  const context = await browser.newContext({
    viewport: { width: look.width, height: 844 },
    colorScheme: look.theme,
    isMobile: isNarrow,
    hasTouch: isNarrow,
  })
  const page = await context.newPage()
  const problems: string[] = []
  page.on('pageerror', (error) => problems.push(`error: ${error.message}`))
  page.on('console', (message) => {
    // A run that is not there is answered by 404, which browsers report by themselves.
    if (message.type() === 'error' && !message.text().includes('404')) problems.push(`console: ${message.text()}`)
  })
  page.on('dialog', (dialog) => {
    problems.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  const { origin } = new URL(home)
  page.on('request', (request) => {
    const url = request.url()
    if (!url.startsWith('data:') && !url.startsWith('blob:') && !(origin === 'null' ? url.startsWith('file:') : url.startsWith(origin)))
      problems.push(`request: ${url}`)
  })
  await page.addInitScript({ content: countShifts })
  await page.goto(home)
  return { context, page, problems }
}

async function visit({ page }: Watched, home: string, hash: string): Promise<void> {
  await page.goto('about:blank')
  await page.goto(home.split(/[?#]/)[0] + hash)
  await page.waitForSelector('main > *')
  await page.waitForTimeout(150)
}

/** Everything that must hold of a page that is on screen. */
async function check(name: string, { page, problems }: Watched): Promise<void> {
  // Through the debugger's own context, so that the page's policy stays as it is.
  const session = await page.context().newCDPSession(page)
  const evaluate = async (expression: string) => {
    const { result, exceptionDetails } = await session.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true })
    if (exceptionDetails) throw new Error(`${name}: ${exceptionDetails.exception?.description ?? exceptionDetails.text}`)
    return result.value as unknown
  }
  await evaluate(axe)
  const violations = await evaluate(
    `axe.run(document).then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes[0].html.slice(0, 200) + ' ' + (nodes[0].failureSummary ?? '').slice(0, 200)))`,
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

const looks = [
  { width: 1280, theme: 'light' },
  { width: 1280, theme: 'dark' },
  { width: 390, theme: 'light' },
] as const

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

  it.each(looks)('shows every page at $width pixels, $theme', async (look) => {
    const run = kind === 'live' ? live.id : saved.id
    const watched = await watch(home, look)
    for (const [name, hash] of Object.entries(pages(run, kind !== 'live'))) {
      await visit(watched, home, hash)
      if (pictures)
        await watched.page.screenshot({ path: join(pictures, `${kind}-${name}-${look.width}-${look.theme}.png`), fullPage: true })
      await check(`${kind} ${name}`, watched)
    }
    await watched.context.close()
  })
})
