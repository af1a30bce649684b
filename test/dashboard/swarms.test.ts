// @module-tag quick
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { exportRun, openDashboard } from '@aworld-train/dashboard'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { visible } from '../../packages/dashboard/page/format.ts'
import { hostile, nameWith, type WrittenRun, writeRun } from '../../packages/dashboard/src/testing/write-run.ts'
import { writeSwarm } from '../../packages/dashboard/src/testing/write-swarm.ts'
import { looks, openBrowser, visit, watch } from './browser.ts'
import { check, pictures } from './check-page.ts'

let browser: Browser
let run: WrittenRun
let keys: Readonly<Record<'ten' | 'hostile' | 'sixty' | 'running', string>>
beforeAll(async () => {
  browser = await openBrowser()
  run = await writeRun({ name: 'swarms', isLive: true })
  const { store } = run
  keys = {
    ten: await writeSwarm(store),
    hostile: await writeSwarm(store, { sample: 1, text: hostile }),
    sixty: await writeSwarm(store, { sample: 2, readers: 53 }),
    running: await writeSwarm(store, { isRunning: true }),
  }
})
afterAll(async () => {
  await browser?.close()
  await run?.[Symbol.asyncDispose]()
})

const lanes = (page: Page) => page.locator('.lanes li')
/** Each lane as its name, indented by its level. */
const tree = (page: Page) =>
  lanes(page).evaluateAll((list) =>
    (list as unknown as HTMLElementLike[]).map((lane) => {
      const name = lane.querySelector('.who')!
      const depth = Number(lane.style.getPropertyValue('--depth'))
      return '  '.repeat(depth) + ['.middle', 'small'].map((part) => name.querySelector(part)?.textContent ?? '').join('')
    }),
  )
interface HTMLElementLike {
  readonly style: { getPropertyValue(name: string): string }
  querySelector(selector: string): { textContent: string; querySelector(selector: string): { textContent: string } | null } | null
}

const wholeTree = [
  'planner',
  '  reader.0.0',
  '  reader.0.1',
  '    helper.0.0',
  '    helper.0.1',
  '  reader.0.2',
  'writer',
  'planner:2',
  '  reader.0.0',
  'writer:2',
]

it('shows a lane for each of ten invocations under its caller, in every look', async () => {
  const file = join(run.below, 'swarms.html')
  await exportRun([run.path], file)
  const dashboard = await openDashboard({ runs: [run.path] })
  for (const [home, look, rules] of [
    [dashboard.url, looks.light, 'all'],
    [dashboard.url, looks.dark, 'colours'],
    [dashboard.url, looks.narrow, 'all'],
    [pathToFileURL(file).href, looks.darkNarrow, 'colours'],
  ] as const) {
    const watched = await watch(browser, home, look)
    const { page } = watched
    for (const [name, key] of Object.entries(keys)) {
      if (name === 'running' && home.startsWith('file:')) continue
      await visit(watched, `#/${run.id}/rollout/${key}`)
      await lanes(page).first().waitFor()
      if (pictures) await page.screenshot({ path: join(pictures, `swarm-${name}-${look.width}-${look.theme}.png`), fullPage: true })
      if (name === 'ten') expect(await tree(page)).toEqual(wholeTree)
      await check(`swarm ${name} ${look.width} ${look.theme}`, watched, rules)
    }
    await watched.context.close()
  }
  await dashboard.close()
})

it('leads from an invocation to the one that started it, to those that it started, and to its tokens', async () => {
  const dashboard = await openDashboard({ runs: [run.path] })
  for (const [key, text] of [
    [keys.ten, 'six'],
    [keys.hostile, hostile],
  ] as const) {
    const [planner, reader, helper, writer] = ['planner', 'reader', 'helper', 'writer'].map((name) => nameWith(name, text))
    const second = `${reader}:${planner}.0.1`
    const watched = await watch(browser, dashboard.url, looks.light)
    const { page } = watched
    const at = () => new URLSearchParams(new URL(page.url()).hash.split('?')[1])
    const chosen = () => lanes(page).locator('.chosen .who').getAttribute('title')
    /** The lane that is chosen, and the one whose turns are in the conversation. */
    const follow = async (link: number, id: string) => {
      await page.locator('.talk a:not(.strip)').nth(link).click()
      await expect.poll(chosen).toBe(visible(id))
      expect(await page.locator('.talk header p').textContent()).toBe(visible(id))
    }
    await visit(watched, `#/${run.id}/rollout/${key}`)
    await lanes(page).first().waitFor()
    await follow(1, second)
    expect(at().get('invocation')).toBe(second)
    expect(await page.locator('.talk .started').textContent()).toBe(`Asked for by ${visible(planner!)} in turn 1`)
    await follow(2, `${helper}:${second}.0.1`)
    await follow(0, second)
    await follow(0, planner!)
    expect(await page.locator('.message.chosen h3').textContent()).toContain('turn 1')
    await follow(3, writer!)
    await follow(2, `${writer}:2`)
    expect(await page.locator('.talk .started').textContent()).toBe(
      `Took over the answers of ${visible(writer!)}, ${visible(`${planner}:2`)}`,
    )
    await page.goBack()
    await expect.poll(chosen).toBe(visible(writer!))
    await follow(1, `${planner}:2`)
    await page.locator('.strip').last().click()
    await expect.poll(() => at().get('invocation')).toBe(`${planner}:2`)
    const choice = page.getByLabel('Invocation', { exact: true })
    expect(await choice.inputValue()).toBe(`${planner}:2`)
    await choice.selectOption(planner!)
    await expect.poll(() => at().get('invocation')).toBe(planner)
    await page.getByRole('link', { name: 'Rollout', exact: true }).last().click()
    await expect.poll(chosen).toBe(visible(planner!))
    await check(`links of ${key}`, watched, 'none')
    await watched.context.close()
  }
  await dashboard.close()
})

it('shows the lanes of one agent and its callers, and goes through all calls by keys', async () => {
  const dashboard = await openDashboard({ runs: [run.path] })
  const watched = await watch(browser, dashboard.url, looks.light)
  const { page } = watched
  const chosen = () => lanes(page).locator('.chosen .who').getAttribute('title')
  await visit(watched, `#/${run.id}/rollout/${keys.ten}`)
  await lanes(page).first().waitFor()
  // Five calls of the planner, then the first reader's.
  for (let press = 0; press < 5; press++) await page.keyboard.press('j')
  await expect.poll(chosen).toBe('reader:planner.0.0')
  await page.keyboard.press('k')
  await expect.poll(chosen).toBe('planner')
  await page.getByRole('button', { name: 'helper', exact: true }).click()
  await expect.poll(chosen).toBe('helper:reader:planner.0.1.0.0')
  expect(await tree(page)).toEqual(['planner', '  reader.0.1', '    helper.0.0', '    helper.0.1'])
  await page.keyboard.press('j')
  await expect.poll(chosen).toBe('helper:reader:planner.0.1.0.1')
  await page.getByRole('button', { name: 'all', exact: true }).click()
  await expect.poll(() => tree(page)).toEqual(wholeTree)
  await lanes(page).nth(9).click()
  await expect.poll(chosen).toBe('writer:2')
  expect(await page.locator('.timeline ol li').count()).toBe(1)
  // On a button, Enter belongs to the button.
  await page.evaluate('document.activeElement.blur()')
  await page.keyboard.press('Enter')
  await expect.poll(() => page.url()).toContain('/tokens/')
  expect(new URLSearchParams(page.url().split('?').at(-1)).get('invocation')).toBe('writer:2')
  await page.locator('.stream canvas').waitFor()
  await check('tokens of an invocation', watched)
  await page.keyboard.press('c')
  await expect.poll(() => page.url()).toContain('invocation=writer%3A2')
  await page.locator('.aligned').waitFor()
  expect(await page.getByLabel('Invocation', { exact: true }).inputValue()).toBe('writer:2')
  await check('comparison of an invocation', watched)
  await watched.context.close()
  await dashboard.close()
})

it('shows who asked whom in a rollout that runs, and the chosen one of sixty invocations', async () => {
  const dashboard = await openDashboard({ runs: [run.path] })
  const watched = await watch(browser, dashboard.url, looks.narrow)
  const { page } = watched
  await visit(watched, `#/${run.id}/rollout/${keys.running}`)
  await lanes(page).first().waitFor()
  expect(await tree(page)).toEqual(['planner', '  reader.0.0', '  reader.0.1', '    helper.0.0', '  reader.0.2'])
  await visit(watched, `#/${run.id}/rollout/${keys.sixty}?${new URLSearchParams({ invocation: 'reader:planner.0.52' })}`)
  await expect.poll(() => lanes(page).count()).toBe(60)
  const isInView = `(() => {
    const [lane, list] = ['.lanes .chosen', '.lanes'].map((each) => document.querySelector(each).getBoundingClientRect())
    return lane.top >= list.top && lane.bottom <= list.bottom
  })()`
  await expect.poll(() => page.evaluate(isInView)).toBe(true)
  await check('sixty', watched)
  await watched.context.close()
  await dashboard.close()
})
