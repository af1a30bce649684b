// @module-tag quick
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { exportRun, openDashboard } from '@aworld-train/dashboard'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { writeEvaluation } from '../../packages/dashboard/src/testing/write-evaluation.ts'
import { hostile } from '../../packages/dashboard/src/testing/write-run.ts'
import { load, looks, openBrowser, visit, watch } from './browser.ts'
import { check, pictures } from './check-page.ts'

let browser: Browser
beforeAll(async () => {
  browser = await openBrowser()
})
afterAll(() => browser?.close())

it.each([5, 120, 480])('shows an evaluation of %i tasks, saved and exported', async (tasks) => {
  await using run = await writeEvaluation({ tasks, ...(tasks === 5 && { text: hostile }) })
  const file = join(run.below, 'run.html')
  await exportRun([run.path], file)
  const dashboard = await openDashboard({ runs: [run.path] })
  const homes = { saved: dashboard.url, exported: pathToFileURL(file).href }
  for (const [kind, home] of Object.entries(homes))
    for (const look of tasks === 120 ? [looks.light] : [looks.light, looks.dark, looks.darkNarrow]) {
      const watched = await watch(browser, home, look)
      const { page } = watched
      await load(watched, home, `#/${run.id}`)
      await page.locator('.tasks tbody tr').first().waitFor()
      const name = `evaluation-${tasks}-${kind}-${look.width}-${look.theme}`
      if (pictures) await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true })
      await check(name, watched)
      expect(await page.locator('.tasks tbody tr').count()).toBe(Math.min(tasks, 200))
      await watched.context.close()
    }
  await dashboard.close()
})

it('fills its cells while it runs, and sorts by what differs at its end', async () => {
  await using run = await writeEvaluation({ tasks: 12, ended: 0, text: hostile })
  const dashboard = await openDashboard({ runs: [run.path] })
  const watched = await watch(browser, dashboard.url, looks.light)
  const { page } = watched
  const chip = (name: string) => page.getByRole('group', { name: 'Outcome' }).getByRole('button', { name })
  await expect.poll(() => chip('waiting').innerText()).toMatch(/48$/)
  expect(await page.locator('.headline .figure').innerText()).toMatch(/–\s*no rollout has a reward yet/)
  await check('evaluation that begins', watched)
  await run.end(10)
  // The first two tasks are right and wrong, and the third is half right as far as it has ended.
  await expect.poll(() => chip('right').innerText()).toMatch(/5$/)
  expect(await chip('running').innerText()).toMatch(/1$/)
  expect(await page.locator('.scope').innerText()).toMatch(/^10 of 48 rollouts are in it; 38 are to come\. It is /)
  const first = () => page.locator('.tasks tbody th').first().getAttribute('title')
  expect(await first()).toMatch(/^t-0/)
  if (pictures) await page.screenshot({ path: join(pictures, 'evaluation-live.png'), fullPage: true })
  await check('evaluation that runs', watched)
  await run.end(38)
  run.store.appendEvent({ type: 'run-end', at: Date.now(), status: 'finished' })
  await expect.poll(first).toMatch(/^t-2/)
  expect(await chip('failed').innerText()).toMatch(/2$/)
  // Its end brings what to type next, once.
  await page.reload()
  await expect.poll(first).toMatch(/^t-2/)
  await check('evaluation that has ended', watched)
  await watched.context.close()
  await dashboard.close()
})

it('filters by outcome, kind, reason and tool, and leads to a rollout by a click and to the aligned difference by two', async () => {
  await using run = await writeEvaluation({ tasks: 12 })
  const dashboard = await openDashboard({ runs: [run.path] })
  const watched = await watch(browser, dashboard.url, looks.light)
  const { page } = watched
  const ids = async () => (await page.locator('.tasks tbody th').all()).length
  const titles = () => page.locator('.tasks tbody th').evaluateAll((list) => list.map((each) => each.title.split(':')[0]))
  await expect.poll(ids).toBe(12)
  // Right and wrong samples differ most; of the rest, what failed comes first.
  expect((await titles()).slice(0, 4)).toEqual(['t-2', 't-7', 't-4', 't-9'])
  await page.getByRole('group', { name: 'Outcome' }).getByRole('button', { name: 'failed' }).click()
  await expect.poll(titles).toEqual(['t-4', 't-9'])
  expect(await page.locator('.tasks .faded').count()).toBe(6)
  await page.getByRole('button', { name: 'All', exact: true }).click()
  await page.getByLabel('reason').selectOption('FROZEN_MODEL_FAILED')
  await expect.poll(titles).toEqual(['t-4', 't-9'])
  await page.getByLabel('kind').selectOption('sum')
  await expect.poll(titles).toEqual(['t-4'])
  await page.getByLabel('reason').selectOption({ label: 'any end' })
  await page.getByLabel('kind').selectOption({ label: 'all kinds' })
  await page.getByLabel('tool').selectOption('browser')
  await expect.poll(ids).toBe(12)
  expect(await page.locator('.tasks .faded').count()).toBe(24)
  await page.getByLabel('tool').selectOption({ label: 'any tool' })
  await page.getByLabel('Find in tasks').fill('number 7,')
  await expect.poll(titles).toEqual(['t-7'])
  await page.getByLabel('Find in tasks').fill('nowhere')
  await expect.poll(() => page.locator('.empty h2').innerText()).toBe('No task matches')
  await page.getByLabel('Find in tasks').fill('')
  await page.getByRole('link', { name: 'sample 1, right, reward 1, completed' }).first().click()
  await expect.poll(() => new URL(page.url()).hash).toBe(`#/${run.id}/rollout/evaluation/eval/2/1`)
  await expect.poll(() => page.locator('.trail').innerText()).toMatch(/Tasks\s*›\s*task 2\s*›\s*sample 1/)
  await page.locator('main').getByRole('link', { name: 'Compare', exact: true }).first().click()
  await page.locator('.aligned').waitFor()
  expect(await page.locator('.aligned header').innerText()).toMatch(/Aligned by words/)
  expect(await page.locator('.parting h2').first().innerText()).toMatch(/^They part at word \d+, in turn 1$/)
  expect(await page.locator('.cell[data-side=B] .only').allInnerTexts()).toEqual(expect.arrayContaining([expect.stringContaining('not')]))
  if (pictures) await page.screenshot({ path: join(pictures, 'evaluation-words.png'), fullPage: true })
  // What a click moves has moved on purpose, and on a slow machine later than browsers count as by the click.
  await page.reload()
  await page.locator('.aligned').waitFor()
  await check('two samples without tokens', watched)
  await watched.context.close()
  await dashboard.close()
})

it('lays two evaluations side by side with the interval of their difference, down to the words', async () => {
  await using older = await writeEvaluation({ name: 'older-eval', tasks: 20, text: hostile })
  await using newer = await writeEvaluation({
    name: 'newer-eval',
    tasks: 22,
    text: hostile,
    worse: (task) => task % 10 === 0,
    against: older,
  })
  const file = join(newer.below, 'runs.html')
  await exportRun([newer.path, older.path], file)
  const dashboard = await openDashboard({ runs: [newer.path, older.path] })
  for (const home of [dashboard.url, pathToFileURL(file).href])
    for (const look of [looks.light, looks.darkNarrow]) {
      const watched = await watch(browser, home, look)
      const { page } = watched
      const name = `evaluations-${home.startsWith('file') ? 'exported' : 'saved'}-${look.width}`
      await page.locator('.tasks tbody tr').first().waitFor()
      expect(await page.locator('.differences li').allInnerTexts()).toEqual([
        expect.stringMatching(
          /^A less B: −0\.1\d\d \[−0\.\d+, [−0]\S+\] on 20 tasks: 0 better, 2 worse, 18 equal \(t-0: 1 to 0\) 20 tasks are in both; 2 are scored in the newer/,
        ),
      ])
      expect(await page.locator('.tasks tbody th').evaluateAll((list) => list.slice(0, 2).map((each) => each.title.split(':')[0]))).toEqual(
        ['t-0', 't-10'],
      )
      if (pictures) await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true })
      await check(name, watched)
      await page.getByRole('link', { name: 'Compare two rollouts of t-0' }).click()
      await page.locator('.aligned').waitFor()
      expect(await page.locator('.side').allInnerTexts()).toEqual([
        expect.stringContaining(`${newer.id}, sample 0`),
        expect.stringContaining(`${older.id}, sample 0`),
      ])
      if (pictures) await page.screenshot({ path: join(pictures, `${name}-words.png`), fullPage: true })
      await check(`${name} words`, watched)
      await page.keyboard.press('s')
      await expect.poll(() => new URL(page.url()).hash).toMatch(new RegExp(`^#/${older.id}/compare`))
      await visit(watched, `#/${newer.id}`)
      await page.getByRole('link', { name: 'Side by side' }).click()
      await expect.poll(() => page.locator('.differences li').count()).toBe(1)
      await watched.context.close()
    }
  await dashboard.close()
})

it('says why two runs cannot be compared', async () => {
  await using one = await writeEvaluation({ name: 'one-eval', tasks: 1 })
  await using other = await writeEvaluation({ name: 'other-eval', tasks: 1 })
  const dashboard = await openDashboard({ runs: [one.path, other.path] })
  const watched = await watch(browser, dashboard.url, looks.light)
  await expect
    .poll(() => watched.page.locator('.differences li').allInnerTexts())
    .toEqual([expect.stringMatching(/^A less B: .* have one scored task in common, and a comparison needs two/)])
  await check('evaluations that do not pair', watched)
  await watched.context.close()
  await dashboard.close()
})
