import type { Browser, CDPSession, Page } from 'playwright-core'

/** Runs in the page: notes when what was waited for was on screen, which is when the frame after its change has been drawn. */
const notePaints = `
  window.drawn = () => new Promise((settle) => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = () => settle(performance.timeOrigin + performance.now())
    port2.postMessage(null)
  }))
  window.whenShown = (selector, text) => new Promise((settle) => {
    const look = () => [...document.querySelectorAll(selector)].some((each) => each.textContent.includes(text))
    const found = () => { observer.disconnect(); settle(window.drawn()) }
    const observer = new MutationObserver(() => look() && found())
    if (look()) return settle(window.drawn())
    observer.observe(document, { subtree: true, childList: true, characterData: true })
  })
  window.stepsShown = []
  let shown = 0
  new MutationObserver(() => {
    const step = Number(/step (\\d+) of/.exec(document.querySelector('.progress')?.textContent ?? '')?.[1] ?? 0)
    if (step <= shown) return
    shown = step
    window.drawn().then((at) => window.stepsShown.push([step, at]))
  }).observe(document, { subtree: true, childList: true, characterData: true })
`

/** A page of the dashboard. Times are Unix milliseconds with fractions. */
export interface WatchedPage {
  readonly page: Page
  /** Evaluates outside of the page's content security policy. */
  evaluate<T>(expression: string): Promise<T>
  /** Goes to `url` anew; resolves to the milliseconds until `text` in `selector` was on screen. */
  open(url: string, selector: string, text?: string): Promise<number>
  /** Goes to another page of the same run, as a click does. */
  go(hash: string, selector: string, text?: string): Promise<number>
}

export async function openPage(browser: Browser): Promise<WatchedPage> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 844 } })
  const page = await context.newPage()
  await page.addInitScript({ content: notePaints })
  let session: CDPSession | undefined
  async function evaluate<T>(expression: string): Promise<T> {
    session ??= await context.newCDPSession(page)
    const { result, exceptionDetails } = await session.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true })
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text)
    return result.value as T
  }
  const shown = (selector: string, text: string) => `window.whenShown(${JSON.stringify(selector)}, ${JSON.stringify(text)})`
  return {
    page,
    evaluate,
    async open(url, selector, text = '') {
      await page.goto('about:blank')
      await page.goto(url, { waitUntil: 'commit' })
      return await evaluate(`${shown(selector, text)}.then((at) => at - performance.timeOrigin)`)
    },
    go: (hash, selector, text = '') =>
      evaluate(
        `(() => { const from = performance.timeOrigin + performance.now(); location.hash = ${JSON.stringify(hash)}; return ${shown(selector, text)}.then((at) => at - from) })()`,
      ),
  }
}
