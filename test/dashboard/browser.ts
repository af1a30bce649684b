import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'

/** Debian's Chromium. */
export const openBrowser = (): Promise<Browser> =>
  chromium.launch({ executablePath: '/usr/bin/chromium', args: process.getuid?.() === 0 ? ['--no-sandbox'] : [] })

export interface Look {
  readonly width: number
  readonly theme: 'light' | 'dark'
}

export const looks: Readonly<Record<'light' | 'dark' | 'narrow' | 'darkNarrow', Look>> = {
  light: { width: 1280, theme: 'light' },
  dark: { width: 1280, theme: 'dark' },
  narrow: { width: 390, theme: 'light' },
  darkNarrow: { width: 390, theme: 'dark' },
}

/** Runs in the page: notes when and how far things moved by themselves, and what moved. */
const noteShifts = `
  window.shifts = []
  new PerformanceObserver((list) => {
    for (const { hadRecentInput, startTime, value, sources } of list.getEntries())
      if (!hadRecentInput) window.shifts.push({ at: startTime, value, moved: sources.map(({ node }) => node?.className ?? '') })
  }).observe({ type: 'layout-shift', buffered: true })
`

export interface Watched {
  readonly context: BrowserContext
  readonly page: Page
  /** What no page may do, as it happened. */
  readonly problems: string[]
}

/** A browser page that notes errors, requests to other hosts and refusals of the content security policy. */
export async function watch(browser: Browser, home: string, look: Look): Promise<Watched> {
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
  await page.addInitScript({ content: noteShifts })
  await page.goto(home)
  return { context, page, problems }
}

/** Where what happens behind a page's first content has happened, such as a chart that is drawn. */
async function settle(page: Page): Promise<void> {
  await page.waitForSelector('main > *')
  await page.waitForTimeout(150)
}

/** Opens the page at `hash` as an address that somebody was sent. */
export async function load({ page }: Pick<Watched, 'page'>, home: string, hash: string): Promise<void> {
  // Another query than before: another hash alone loads nothing.
  await page.goto(`${home.split(/[?#]/)[0]}?${Date.now()}${hash}`)
  await settle(page)
}

/** Goes to the page at `hash` as a link does. */
export async function visit({ page }: Pick<Watched, 'page'>, hash: string): Promise<void> {
  await page.evaluate(`new Promise((shown) => {
    window.shifts = []
    const hash = ${JSON.stringify(hash)}
    if (location.hash === hash) return shown()
    addEventListener('hashchange', () => setTimeout(shown), { once: true })
    location.hash = hash
  })`)
  await settle(page)
}
