// @module-tag quick
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { exportRun, openDashboard } from '@aworld-train/dashboard'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { hostile, nameWith, type WrittenRun, writeRun } from '../../packages/dashboard/src/testing/write-run.ts'
import { looks, openBrowser, visit, watch } from './browser.ts'
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

it('shows the desktop after each call, and leads to the desktop of a rollout that runs', async () => {
  const data = 'iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFElEQVR4nGP4z8DAAMIM/////w8AH+4F+7C4l8kAAAAASUVORK5CYII='
  const returned = { content: 'clicked', isError: false, images: [{ mimeType: 'image/png' as const, data, shows: 'desktop' as const }] }
  const desktopUrl = 'http://127.0.0.1:5901/vnc.html?autoconnect=true'
  await using run = await writeRun({ name: 'watched', isLive: true, returned, desktopUrl })
  const dashboard = await openDashboard({ runs: [run.path] })
  const watched = await watch(browser, dashboard.url, looks.light)
  await visit(watched, `#/${run.id}/rollout/train/1/0/0`)
  const screens = watched.page.locator('.screens li')
  await expect.poll(() => screens.allInnerTexts()).toEqual([expect.stringMatching(/^lookup /)])
  await screens.getByRole('button').click()
  await expect.poll(() => watched.page.locator('.message.chosen .shot').getAttribute('alt')).toBe('the desktop after the call')
  if (pictures) await watched.page.screenshot({ path: join(pictures, 'screens.png'), fullPage: true })
  await check('desktop of a rollout', watched)
  expect(await watched.page.getByRole('link', { name: 'Desktop' }).count()).toBe(0)
  await visit(watched, `#/${run.id}/rollout/train/3/0/0`)
  const link = watched.page.getByRole('link', { name: 'Desktop' })
  await expect.poll(() => link.getAttribute('href')).toBe(`${desktopUrl}&rollout=train%2F3%2F0%2F0`)
  await watched.context.close()
  await dashboard.close()
})

it('shows images that a tool returned, and nothing else as one', async () => {
  const png = 'iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFElEQVR4nGP4z8DAAMIM/////w8AH+4F+7C4l8kAAAAASUVORK5CYII='
  const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" onload="window.harmed = 1"><script>window.harmed = 1</script></svg>')
  const image = (data: string) => ({ mimeType: 'image/png' as const, data })
  const seen = { content: '[image image/png, 77 bytes]', isError: false }
  await using saved = await writeRun({ name: 'images', returned: { ...seen, images: [image(png), image(svg.toString('base64'))] } })
  await using going = await writeRun({ name: 'going', isLive: true, returned: { ...seen, images: [image(png)] } })
  const file = join(saved.below, 'run.html')
  await exportRun([saved.path], file)
  const dashboard = await openDashboard({ runs: [saved.path, going.path] })
  const shown = async (home: string, run: string, look = looks.light) => {
    const watched = await watch(browser, home, look)
    await visit(watched, `#/${run}/rollout/train/1/0/0`)
    const shots = watched.page.locator('.shot')
    await shots.first().waitFor()
    const widths = () => shots.evaluateAll((list) => list.map((shot) => (shot as unknown as { naturalWidth: number }).naturalWidth))
    await expect.poll(async () => (await widths())[0]).toBe(2)
    if (pictures) await watched.page.screenshot({ path: join(pictures, `images-${run}-${look.width}.png`), fullPage: true })
    await check(`images of ${run}`, watched)
    const found = await widths()
    await watched.context.close()
    return found
  }
  // What claims to be a PNG and is none is not drawn.
  expect(await shown(dashboard.url, saved.id)).toEqual([2, 0])
  expect(await shown(dashboard.url, going.id, looks.darkNarrow)).toEqual([2])
  expect(await shown(pathToFileURL(file).href, saved.id)).toEqual([2, 0])
  await dashboard.close()
  for (const content of [
    `data:image/svg+xml;base64,${svg.toString('base64')}`,
    'data:text/html;base64,PHNjcmlwdD53aW5kb3cuaGFybWVkID0gMTwvc2NyaXB0Pg==',
    'data:image/png;base64,"onerror="window.harmed = 1',
    `data:image/png;base64,${'A'.repeat(2_100_000)}`,
  ]) {
    await using run = await writeRun({ name: 'hostile', returned: { content, isError: false } })
    const other = await openDashboard({ runs: [run.path] })
    const watched = await watch(browser, other.url, looks.light)
    await visit(watched, `#/${run.id}/rollout/train/1/0/0`)
    await watched.page.locator('.message.tool').waitFor()
    expect(await watched.page.locator('main img').count()).toBe(0)
    expect((await watched.page.locator('main').innerText()).length).toBeLessThan(100_000)
    await check(`no image ${content.slice(0, 30)}`, watched, 'none')
    await watched.context.close()
    await other.close()
  }
})

it('does by keys what the list of keys says', async () => {
  const dashboard = await openDashboard({ runs: [saved.path] })
  const watched = await watch(browser, dashboard.url, looks.light)
  const { page } = watched
  const at = () => decodeURIComponent(new URL(page.url()).hash).replace(`#/${saved.id}`, '')
  const press = async (key: string, address: string) => {
    await page.keyboard.press(key)
    await expect.poll(at, { message: key, interval: 20 }).toBe(address)
    await page.waitForSelector('main > *')
  }
  const chosen = (key: string) => {
    const before = at()
    return page.keyboard.press(key).then(() => expect.poll(at, { message: key, interval: 20 }).not.toBe(before))
  }
  await visit(watched, `#/${saved.id}/step/1`)
  await press('ArrowRight', '/step/2')
  await press('ArrowLeft', '/step/1')
  await press('c', '/compare/train/1/0/0?with=train/1/0/1')
  await press('2', '/step/1')
  await press('j', '/step/1?group=train/1/1')
  await press('k', '/step/1?group=train/1/0')
  await press('Enter', '/rollout/train/1/0/0')
  await press('ArrowRight', '/rollout/train/1/0/1')
  await press('ArrowLeft', '/rollout/train/1/0/0')
  await press('c', '/compare/train/1/0/0?with=train/1/0/1')
  await press('3', '/rollout/train/1/0/0')
  const call = () => page.locator('.timeline ol .chosen .who').textContent()
  await page.keyboard.press('j')
  await expect.poll(call).toContain('lookup')
  await page.keyboard.press('k')
  await expect.poll(call).toContain('solver')
  await press('Enter', '/tokens/train/1/0/0')
  await chosen('ArrowRight')
  const first = Number(new URLSearchParams(at().split('?')[1]).get('at'))
  await press('ArrowLeft', `/tokens/train/1/0/0?at=${first - 1}`)
  await press('b', `/tokens/train/1/0/0?at=${first - 1}&by=advantage`)
  for (const key of ['k', 'j', 'n']) await chosen(key)
  await press('c', '/compare/train/1/0/0?with=train/1/0/1')
  await press('s', '/compare/train/1/0/1?with=train/1/0/0')
  const fold = () => page.locator('.aligned button.link').textContent()
  await expect.poll(fold).toBe('Show equal')
  await page.keyboard.press('a')
  await expect.poll(fold).toBe('Fold equal')
  await press('1', '')
  await press('2', '/step/1')
  await press('3', '/rollout/train/1/0/1')
  await press('4', '/tokens/train/1/0/1')
  await press('5', '/compare/train/1/0/1?with=train/1/0/0')
  await press('6', '/health')
  await page.keyboard.press('t')
  await expect.poll(() => page.locator('html').getAttribute('data-theme')).toBe('dark')
  await page.keyboard.press('?')
  await page.locator('dialog').waitFor()
  await page.keyboard.press('Escape')
  await page.locator('dialog').waitFor({ state: 'detached' })
  await press('0', '#/')
  expect(watched.problems).toEqual([])
  await watched.context.close()
  await dashboard.close()
})

it('does by a key that is pressed while a page is being read what it says, once it is read', async () => {
  const dashboard = await openDashboard({ runs: [saved.path] })
  const watched = await watch(browser, dashboard.url, looks.light)
  const { page } = watched
  await visit(watched, `#/${saved.id}/rollout/train/1/0/0`)
  let answer = () => {}
  const answered = new Promise<void>((resolve) => {
    answer = resolve
  })
  await page.route(/\/rollout\?/, async (route) => {
    await answered
    await route.continue()
  })
  await page.keyboard.press('ArrowRight')
  await page.keyboard.press('k')
  await page.keyboard.press('ArrowLeft')
  expect(page.url()).toMatch(/rollout\/train\/1\/0\/1$/)
  expect(await page.locator('main > *').count()).toBe(0)
  answer()
  await page.waitForURL(/rollout\/train\/1\/0\/0$/)
  expect(watched.problems).toEqual([])
  await watched.context.close()
  await dashboard.close()
})

it('compares the tokens of the invocation that the address names', async () => {
  const dashboard = await openDashboard({ runs: [saved.path] })
  const watched = await watch(browser, dashboard.url, looks.light)
  const { page } = watched
  const at = () => new URLSearchParams(new URL(page.url()).hash.split('?')[1]).get('invocation')
  const helper = nameWith('helper', hostile)
  const chosen = page.locator('.chips [aria-pressed=true]')
  await visit(watched, `#/${saved.id}/compare/train/1/0/0?with=train%2F1%2F0%2F1`)
  expect([await chosen.textContent(), await page.locator('.parting h2').first().textContent()]).toEqual([
    'solver',
    expect.stringMatching(/^They part at/),
  ])
  expect(await page.locator('.fork p b').allTextContents()).toEqual(['0.905', '0.135'])
  await page.getByRole('button', { name: 'helper' }).click()
  expect([at(), await chosen.textContent()]).toEqual([helper, expect.stringMatching(/^helper/)])
  expect(await page.locator('.empty p').textContent()).toMatch(/^Both have the same \d+ tokens of helper/)
  await page.keyboard.press('s')
  await page.locator('.empty').waitFor()
  expect([at(), await chosen.textContent()]).toEqual([helper, expect.stringMatching(/^helper/)])
  await watched.context.close()
  await dashboard.close()
})

/** What is used of a canvas of the browser. */
interface Canvas {
  readonly width: number
  readonly height: number
  getContext(kind: '2d'): { getImageData(x: number, y: number, width: number, height: number): { data: { buffer: ArrayBuffer } } }
}

it('draws the lines on screen of a rollout with 131,072 tokens', async () => {
  await using run = await writeRun({ name: 'long', longTokens: 131_072 })
  const dashboard = await openDashboard({ runs: [run.path] })
  const watched = await watch(browser, dashboard.url, looks.light)
  const { page } = watched
  const stream = page.locator('.stream canvas')
  const position = async () => Number(/position\s+([\d\s]+) of/.exec(await page.locator('.inspect').innerText())![1]!.replaceAll(/\s/g, ''))
  /** The token in the middle of the screen, by a click on it. */
  const middle = async () => {
    await page.mouse.click(402, 600)
    return await position()
  }
  /** How many colours the canvas has: those of ink, paper and probabilities, and the shades between them. */
  const drawn = () =>
    stream.evaluate((element) => {
      const canvas = element as unknown as Canvas
      const { data } = canvas.getContext('2d').getImageData(0, 200, canvas.width, canvas.height - 200)
      return new Set(new Uint32Array(data.buffer)).size
    })
  for (const at of [100, 65_000, 131_000]) {
    await visit(watched, `#/${run.id}/tokens/train/2/0/0?at=${at}`)
    await stream.waitFor()
    expect(await position()).toBe(at)
    expect(await drawn()).toBeGreaterThan(20)
    expect(Math.abs((await middle()) - at)).toBeLessThan(3_000)
  }
  const before = await middle()
  await page.mouse.wheel(0, -5_000)
  await page.waitForTimeout(200)
  expect(await drawn()).toBeGreaterThan(20)
  expect(before - (await middle())).toBeGreaterThan(5_000)
  await check('long tokens', watched)
  await watched.context.close()
  await dashboard.close()
})

it('shows what happens in a live run without being loaded again', async () => {
  await using run = await writeRun({ name: 'going-on', isLive: true })
  const dashboard = await openDashboard({ runs: [run.path] })
  const watched = await watch(browser, dashboard.url, looks.light)
  const { page } = watched
  await visit(watched, `#/${run.id}`)
  const request = { ...run.store.rollout('train/3/0/0')!.request, key: 'train/3/0/1', sample: 1 }
  const { attempt } = await run.store.begin(request)
  await run.store.finish({ ...run.store.episode('train/1/0/0')!, rollout: request.key, group: request.group, attempt })
  run.store.appendEvent({ type: 'evaluation-end', at: Date.now(), name: 'before', step: 0, metrics: {} })
  await page.locator('.progress', { hasText: 'step 3, 1 done' }).waitFor()
  await run.store.commitStep({ step: 3, weightVersion: 4, rollouts: [], metrics: { entropy: 0.1 }, checkpoint: null })
  run.store.appendEvent({ type: 'step-start', at: Date.now(), step: 4, steps: 9 })
  await page.locator('.progress', { hasText: 'step 4 of 9' }).waitFor()
  await page.goto(`${dashboard.url.split('?')[0]}#/${run.id}/step/3`)
  await page.locator('main h1', { hasText: 'Step 3' }).waitFor()
  expect(watched.problems).toEqual([])
  await watched.context.close()
  await dashboard.close()
})

/** Runs in the page: notes what is written on canvases, such as the numbers of an axis. */
const noteDrawnText = `
  window.drawnText = []
  const { fillText } = CanvasRenderingContext2D.prototype
  CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
    window.drawnText.push(text)
    fillText.call(this, text, ...place)
  }
`

it('lays runs over each other whose folders have the same name', async () => {
  await using first = await writeRun({ name: 'first' })
  await using second = await writeRun({ name: 'second' })
  const paths = [first, second].map(({ below }) => join(below, '50% of a,b & c? #1'))
  await rename(first.path, paths[0]!)
  await rename(second.path, paths[1]!)
  for (const [runs, text] of [
    [paths, /2 runs.*by step/s],
    [paths.slice(1), /Held-out reward/],
  ] as const) {
    const dashboard = await openDashboard({ runs })
    const watched = await watch(browser, dashboard.url, looks.light)
    const { page } = watched
    await expect.poll(() => page.innerText('main')).toMatch(text)
    if (runs.length > 1) {
      await page.evaluate(noteDrawnText)
      await page.getByRole('button', { name: 'By time' }).click()
      await expect.poll(() => page.innerText('main')).toMatch(/by seconds of training/)
      expect(page.url()).toMatch(/&by=time$/)
      // The second step ended after 2.4 seconds.
      await expect.poll(() => page.evaluate('window.drawnText')).toContain('2.2')
    }
    expect(watched.problems).toEqual([])
    await watched.context.close()
    await dashboard.close()
  }
})

it('shows a stretch of a conversation of 600 turns, and every sample of a group of 2,100', async () => {
  await using run = await writeRun({ name: 'many', isLive: true })
  const { store } = run
  const { request } = store.rollout('train/3/0/0')!
  const [turn] = store.turnsOf(request.key)!.trajectories.get('solver')!
  for (let index = 1; index < 600; index++) await store.appendTurn(request.key, 0, 'solver', { ...turn!, index })
  const sample = (number: number) => ({ ...request, key: `train/4/0/${number}`, group: 'train/4/0', sample: number, step: 4 })
  await Promise.all(Array.from({ length: 2_100 }, (_, number) => store.queue(sample(number))))
  const dashboard = await openDashboard({ runs: [run.path] })
  const watched = await watch(browser, dashboard.url, looks.light)
  const { page } = watched
  await visit(watched, `#/${run.id}/rollout/train/3/0/0?call=solver%2F450`)
  const stretches = page.locator('.stretch')
  expect(await stretches.allInnerTexts()).toEqual([
    expect.stringMatching(/^calls 401 – 480 of 600/),
    expect.stringMatching(/^turns 441 – 480 of 600/),
  ])
  expect(await page.locator('.message.chosen').innerText()).toContain('turn 451')
  await page.locator('.talk').getByRole('button', { name: 'Later' }).click()
  expect(await stretches.nth(1).innerText()).toMatch(/^turns 481 – 520 of 600/)
  await check('a long conversation', watched)
  expect(Number(await page.evaluate('document.querySelectorAll("main *").length'))).toBeLessThan(10_000)
  await visit(watched, `#/${run.id}/rollout/train/4/0/2050`)
  await expect.poll(() => page.locator('.trail').innerText()).toContain('sample 2050')
  expect(await page.locator('.samples').innerText()).toContain('101 of 2\u2009100 samples')
  await visit(watched, `#/${run.id}/compare/train/4/0/2050?with=train%2F4%2F0%2F2051`)
  const sides = page.locator('.sides')
  await expect.poll(() => sides.innerText()).toMatch(/sample 2050.*sample 2051/s)
  await page.keyboard.press('ArrowRight')
  await expect.poll(() => sides.innerText()).toMatch(/sample 2050.*sample 2052/s)
  // The left of the two is passed over.
  for (const other of [2051, 2049]) {
    await page.keyboard.press('ArrowLeft')
    await expect.poll(() => sides.innerText()).toMatch(new RegExp(`sample 2050.*sample ${other}`, 's'))
  }
  expect(watched.problems).toEqual([])
  await watched.context.close()
  await dashboard.close()
})

it('lists runs as they come and go', async () => {
  await using first = await writeRun({ name: 'first' })
  await using second = await writeRun({ name: 'second' })
  const dashboard = await openDashboard({ below: first.below })
  const watched = await watch(browser, dashboard.url, looks.light)
  const { page } = watched
  const row = (id: string) => page.locator('main tbody tr', { hasText: id })
  await row(first.id).waitFor()
  await rename(second.path, join(first.below, second.id))
  await row(second.id).filter({ hasText: 'finished' }).waitFor()
  await page.getByRole('link', { name: first.id }).click()
  await page.getByText('Held-out reward').first().waitFor()
  await rm(join(first.below, second.id), { recursive: true })
  await page.getByTitle('All runs').click()
  await row(second.id).filter({ hasText: 'is not a run' }).waitFor()
  expect(watched.problems).toEqual([])
  await watched.context.close()
  await dashboard.close()
})

it('compares with what every sample of a group that runs has by now', async () => {
  await using run = await writeRun({ name: 'comparing', isLive: true })
  const { store } = run
  const { request } = store.rollout('train/3/0/0')!
  const other = (sample: number) => ({ ...request, key: `train/3/0/${sample}`, sample })
  await store.begin(other(1))
  const { attempt } = await store.begin(other(2))
  const dashboard = await openDashboard({ runs: [run.path] })
  const watched = await watch(browser, dashboard.url, looks.light)
  await visit(watched, `#/${run.id}/compare/train/3/0/0?with=train%2F3%2F0%2F1`)
  const samples = () => watched.page.locator('.ways tbody td:nth-child(2)').allTextContents()
  await expect.poll(samples).toEqual(['1×'])
  await store.appendTurn(other(2).key, attempt, 'solver', store.turnsOf(request.key)!.trajectories.get('solver')![0]!)
  store.appendEvent({ type: 'step-start', at: Date.now(), step: 3, steps: 9 })
  await expect.poll(samples).toEqual(['2×'])
  expect(watched.problems).toEqual([])
  await watched.context.close()
  await dashboard.close()
})

it('shows how the process of a live run is doing, and that it has fallen silent', async () => {
  await using run = await writeRun({ name: 'measured', isLive: true })
  const dashboard = await openDashboard({ runs: [run.path] })
  const watched = await watch(browser, dashboard.url, looks.light)
  const { page } = watched
  const last = run.store.health(0).samples.at(-1)!
  const calls = page.locator('.process figure', { hasText: 'Model calls' }).locator('figcaption b')
  await run.store.keepHealth({ ...last, at: Date.now(), calls: 17 })
  await visit(watched, `#/${run.id}/health`)
  await calls.filter({ hasText: /^17$/ }).waitFor()
  expect(await page.locator('.process [role=alert]').count()).toBe(0)
  await run.store.keepHealth({ ...last, at: Date.now(), calls: 23, channel: null })
  await calls.filter({ hasText: /^23$/ }).waitFor()
  await page.getByText('No trainer connects to this process.').waitFor()
  expect(await page.locator('tr', { hasText: 'gpu-2:8000' }).innerText()).toMatch(/^gpu-2:8000 six\s+out: unhealthy\s+0\s+0$/)
  await check('health', watched)
  await watched.context.close()
  await dashboard.close()
  // The samples of this one are older.
  const silent = await openDashboard({ runs: [live.path] })
  const other = await watch(browser, silent.url, looks.narrow)
  await visit(other, `#/${live.id}/health`)
  await other.page.locator('.process [role=alert]', { hasText: 'It has said nothing for' }).waitFor()
  await check('silent', other)
  await other.context.close()
  await silent.close()
})
