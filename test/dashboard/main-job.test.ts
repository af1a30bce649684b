// @module-tag quick
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Episode, RunEvent, RunReport } from '@aworld-train/core'
import { exportRun, openDashboard } from '@aworld-train/dashboard'
import { readRun } from '@aworld-train/store'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { repository, runCli } from '../support/run-cli.ts'
import { looks, openBrowser, visit, type Watched, watch } from './browser.ts'
import { check } from './check-page.ts'

const steps = 4
const heldOut = 48

let folder: string
let run: string
let output: string
let browser: Browser
let report: RunReport
/** Every page of the run that was open while the job trained, as it showed the run at the end. */
let live: Record<string, Watched>
/** What the overview showed meanwhile, and since when. */
let seen: readonly Seen[]

interface Seen {
  /** Unix milliseconds. */
  readonly at: number
  readonly progress: string
  readonly curve: string
}

/** Runs in the page: notes what it says of the run's progress and of the last step on the curve, as often as that changes. */
const noteChanges = `
  window.seen = []
  const note = () => {
    const text = (selector) => document.querySelector(selector)?.textContent ?? ''
    const [progress, curve] = [text('.progress'), text('.curve .readout b')]
    const last = window.seen.at(-1)
    if (last?.progress !== progress || last.curve !== curve) window.seen.push({ at: Date.now(), progress, curve })
  }
  new MutationObserver(note).observe(document, { subtree: true, childList: true, characterData: true })
`

const hashes = (id: string) => ({
  overview: `#/${id}`,
  groups: `#/${id}/step/2`,
  'held-out': `#/${id}/step/test`,
  rollout: `#/${id}/rollout/train/2/0/0`,
  tokens: `#/${id}/tokens/train/2/0/0`,
  compare: `#/${id}/compare/train/2/0/0?with=train%2F2%2F0%2F1`,
  health: `#/${id}/health`,
})

/** The main example with fewer steps and fewer held-out tasks. */
async function writeProject(): Promise<string> {
  const example = join(repository, 'examples/periodic-table')
  const lines = (await readFile(join(example, 'data/test.jsonl'), 'utf8')).trim().split('\n')
  const every = Math.floor(lines.length / heldOut)
  await writeFile(
    join(folder, 'test.jsonl'),
    lines
      .filter((_, index) => index % every === 0)
      .slice(0, heldOut)
      .join('\n'),
  )
  await symlink(join(repository, 'node_modules'), join(folder, 'node_modules'))
  await writeFile(join(folder, 'package.json'), '{ "type": "module", "private": true }\n')
  const at = (name: string) => JSON.stringify(join(example, name))
  await writeFile(
    join(folder, 'aworld-train.config.ts'),
    `import definition from ${JSON.stringify(pathToFileURL(join(example, 'aworld-train.config.ts')).href)}
export default {
  ...definition,
  agent: ${at('agent.ts#agent')}, trainDataset: ${at('data/train.jsonl')}, validationDataset: ${at('data/validation.jsonl')}, testDataset: './test.jsonl', rewardFunc: ${at('reward.ts#exactMatch')},
  config: { ...definition.config, model: { path: ${at('model')} }, training: { ...definition.config.training, steps: ${steps} } },
}
`,
  )
  return folder
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld train dashboard '))
  browser = await openBrowser()
  let opening: Promise<typeof live> | undefined
  const open = async (url: string) => {
    const id = url.split('#/')[1]!
    const openAt = async (hash: string, script = '') => {
      const watched = await watch(browser, url, looks.light)
      await watched.page.evaluate(script)
      await visit(watched, hash)
      return watched
    }
    const { overview, ...others } = hashes(id)
    // The first is there before a step is.
    const first = await openAt(overview, noteChanges)
    const opened = Object.entries({ ...others, runs: '#/' }).map(async ([name, hash]) => [name, await openAt(hash)] as const)
    return { overview: first, ...Object.fromEntries(await Promise.all(opened)) }
  }
  /** Of the list no server waits for a last reading, so that it is looked at while the job trains. */
  const checkList = async () => {
    const { runs, ...others } = await opening!
    await runs!.page.locator('main tbody tr', { hasText: 'running' }).waitFor()
    await check('live runs', runs!)
    await runs!.context.close()
    return others
  }
  const { code, stdout, stderr } = await runCli(['train', await writeProject(), '--seed', '11', '--run-path', join(folder, 'runs')], {
    deadlineMs: 500_000,
    onLine(line) {
      const address = /^watch {4}(\S+)$/.exec(line)?.[1]
      if (address) opening = open(address)
      if (line.startsWith('train: 1/')) opening = checkList()
      // Whoever awaits it hears what failed.
      opening?.catch(() => {})
    },
  })
  expect(code, stdout + stderr).toBe(0)
  output = stdout
  live = await opening!
  seen = (await live['overview']!.page.evaluate('window.seen')) as readonly Seen[]
  run = join(folder, 'runs', (await readdir(join(folder, 'runs')))[0]!)
  report = JSON.parse(await readFile(join(run, 'report.json'), 'utf8')) as RunReport
}, 600_000)

afterAll(async () => {
  await browser?.close()
  await rm(folder, { recursive: true, force: true })
})

/** What the page says of the run, without what only a live page or an export has. */
async function textOf(page: Page): Promise<string[]> {
  const text = `${await page.locator('header .run').innerText()}\n${await page.locator('main').innerText()}`
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !/^(copy|Hand this on|view .*--export)/.test(line))
}

it('pages that were open while the job trained show its end as the saved run does', async () => {
  const saved = await openDashboard({ runs: [run] })
  const watched = await watch(browser, saved.url, looks.light)
  for (const [name, hash] of Object.entries(hashes(basename(run)))) {
    const { page } = live[name]!
    await check(`live ${name}`, live[name]!)
    await visit(watched, hash)
    if (name === 'health')
      for (const shown of [page, watched.page]) {
        expect(await shown.locator('.process .chart').count()).toBe(5)
        // The process says once more how it is when it ends, behind the end of the run.
        await shown.evaluate("for (const each of document.querySelectorAll('.process, .process + *')) each.style.display = 'none'")
      }
    expect([name, await textOf(page)]).toEqual([name, await textOf(watched.page)])
    expect(await page.locator('.status').innerText()).toBe('finished')
  }
  await watched.context.close()
  await saved.close()
})

it('the overview shows steps while the job trains', async () => {
  const events = (await readFile(join(run, 'events.jsonl'), 'utf8')).trim().split('\n')
  const { at: end } = events.map((line) => JSON.parse(line) as RunEvent).find(({ type }) => type === 'run-end')!
  const before = seen.filter(({ at }) => at < end)
  const stepsOf = (texts: readonly string[]) => new Set(texts.flatMap((text) => /^step (\d+)/.exec(text)?.[1] ?? []))
  expect(stepsOf(before.map(({ progress }) => progress)).size, JSON.stringify(seen)).toBeGreaterThan(1)
  expect(new Set(before.map(({ curve }) => curve)).size, JSON.stringify(seen)).toBeGreaterThan(1)
})

/** Cells of the table of held-out rewards, by the first of each row: `before` and `after`. */
const heldOutOf = async (page: Page): Promise<Record<string, [string, string]>> =>
  Object.fromEntries(
    (await page.locator('.rises tbody tr').allInnerTexts()).map((row) => {
      const [name, ...cells] = row.split(/\s*[\t\n]\s*/).filter((cell) => cell !== '')
      return [name!.replace(/ \d+$/, ''), cells.slice(-2) as [string, string]]
    }),
  )
const digits = (text: string) => Number(text.replace(/[^\d.]/g, ''))
/** The list of the ledger: names and numbers. */
const ledgerOf = async (page: Page): Promise<Record<string, number>> =>
  Object.fromEntries(
    (await page.locator('.ledger tbody tr').allInnerTexts()).map((row) => {
      const [name, value] = row.split('\t').map((cell) => cell.trim())
      return [name!, digits(value!)]
    }),
  )

/** The numbers of a run, counted from its episodes and from nothing else. */
function countAgain(episodes: readonly Episode[]) {
  const mean = (all: readonly Episode[]) => all.reduce((sum, { reward }) => sum + (reward ?? 0), 0) / all.length
  const sampled = (all: readonly Episode[]) =>
    all.reduce(
      (sum, { trajectories }) =>
        sum + trajectories.reduce((tokens, { turns }) => tokens + turns.reduce((of, turn) => of + turn.completionTokenIds.length, 0), 0),
      0,
    )
  const named = (name: string) => episodes.filter(({ rollout }) => rollout.startsWith(`evaluation/${name}/`))
  const step = (number: number) => episodes.filter(({ rollout }) => rollout.startsWith(`train/${number}/`))
  const training = episodes.filter(({ split }) => split === 'train')
  const groups = [...Map.groupBy(training, ({ group }) => group).values()]
  const teaching = groups.filter((group) => group.some(({ reward }) => reward !== group[0]!.reward))
  const turns = episodes.flatMap(({ trajectories }) => trajectories.flatMap((trajectory) => trajectory.turns))
  return {
    heldOut: Object.fromEntries(['before', 'after', 'greedy-before', 'greedy-after'].map((name) => [name, mean(named(name))])),
    steps: Array.from({ length: steps }, (_, index) => mean(step(index + 1))),
    trainedOfStep: Array.from({ length: steps }, (_, index) => [
      sampled(teaching.flat().filter((episode) => step(index + 1).includes(episode))),
      sampled(step(index + 1)),
    ]),
    ledger: {
      sampled: sampled(episodes),
      trained: sampled(teaching.flat()),
      evaluation: sampled(episodes.filter(({ split }) => split !== 'train')),
      zeroVariance: sampled(training) - sampled(teaching.flat()),
    },
    rollouts: episodes.length,
    modelCalls: turns.length,
    toolCalls: episodes.reduce((sum, { toolCalls }) => sum + toolCalls.length, 0),
  }
}

it('page, exported file, terminal and report.json give the numbers that are counted from the episodes', async () => {
  const reader = readRun(run)
  const counted = countAgain([...reader.episodes()])
  reader.close()
  const { heldOut: rewards, ledger } = counted
  expect(counted.rollouts).toBe(4 * heldOut + steps * 128)
  expect(ledger.trained).toBeGreaterThan(0)
  expect(ledger.zeroVariance).toBeGreaterThan(0)

  expect({
    rewards: [report.before, report.after, report.greedyBefore, report.greedyAfter].map((each) => each?.reward),
    curve: report.curve.map(({ reward }) => reward),
    ledger: report.ledger,
    counts: [report.counts.rollouts, report.counts.modelCalls.gateway, report.counts.toolCalls.environment],
  }).toEqual({
    rewards: [rewards['before'], rewards['after'], rewards['greedy-before'], rewards['greedy-after']].map((each) =>
      expect.closeTo(each!, 12),
    ),
    curve: counted.steps.map((reward) => expect.closeTo(reward, 12)),
    ledger: {
      version: 1,
      sampled: ledger.sampled,
      trained: ledger.trained,
      untrained: { evaluation: ledger.evaluation, 'zero-variance-group': ledger.zeroVariance },
      unexplained: 0,
      withVariance: { sampled: ledger.trained, trained: ledger.trained },
    },
    counts: [counted.rollouts, counted.modelCalls, counted.toolCalls],
  })

  const shown = (name: string) => rewards[name]!.toFixed(3)
  const line = (start: RegExp) => output.split('\n').find((each) => start.test(each)) ?? ''
  const intervals = ([low, high]: readonly [number, number]) => `[${low.toFixed(3)}, ${high.toFixed(3)}]`
  expect(line(/^temperature 1 /).split(/\s{2,}/)).toEqual([
    'temperature 1',
    `${shown('before')} ${intervals(report.before!.interval)}`,
    `${shown('after')} ${intervals(report.after!.interval)}`,
  ])
  expect(line(/^greedy /).match(/0\.\d{3}(?= \[)/g)).toEqual([shown('greedy-before'), shown('greedy-after')])
  expect(line(/^tokens /)).toBe(
    `tokens   ${ledger.sampled} sampled = ${ledger.trained} trained + evaluation ${ledger.evaluation} + zero-variance-group ${ledger.zeroVariance} + 0 unexplained`,
  )
  expect(line(/^counts /)).toBe(`counts   ${counted.rollouts} rollouts, ${counted.modelCalls} model calls, ${counted.toolCalls} tool calls`)
  counted.steps.forEach((reward, index) => {
    expect(output).toContain(`train: ${index + 1}/${steps} steps  reward ${reward.toFixed(3)}`)
  })

  const file = join(folder, 'run.html')
  const { bytes } = await exportRun([run], file)
  expect(bytes).toBeLessThan(6_000_000)
  const saved = await openDashboard({ runs: [run] })
  for (const home of [saved.url, pathToFileURL(file).href]) {
    const watched = await watch(browser, home, looks.light)
    const { page } = watched
    await visit(watched, `#/${basename(run)}`)
    const kinds = Object.keys(report.before!.byKind)
    expect(await heldOutOf(page)).toEqual({
      all: [shown('before'), shown('after')],
      'all, greedy': [shown('greedy-before'), shown('greedy-after')],
      ...Object.fromEntries(
        kinds.map((kind) => [kind, [report.before!.byKind[kind]!.reward.toFixed(3), report.after!.byKind[kind]!.reward.toFixed(3)]]),
      ),
    })
    expect(await page.locator('.headline .figure').innerText()).toContain(intervals(report.after!.interval))
    expect(digits(await page.locator('.ledger header').innerText())).toBe(ledger.sampled)
    expect(await ledgerOf(page)).toEqual({
      trained: ledger.trained,
      evaluation: ledger.evaluation,
      'zero variance groups': ledger.zeroVariance,
      unexplained: 0,
    })
    for (const step of counted.steps.keys()) {
      await visit(watched, `#/${basename(run)}/step/${step + 1}`)
      const facts = (await page.locator('main .title').innerText()).replaceAll(/\s+/g, ' ')
      expect(facts).toContain(`reward ${counted.steps[step]!.toFixed(3)} [`)
      const [trained, sampled] = counted.trainedOfStep[step]!
      const tokens = /tokens trained ([\d\s]+) of ([\d\s]+?) \d+ %/.exec(facts)?.slice(1)
      expect(tokens?.map(digits)).toEqual([trained, sampled])
    }
    expect(watched.problems).toEqual([])
    await watched.context.close()
  }
  await saved.close()
})
