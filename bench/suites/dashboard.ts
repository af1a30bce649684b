import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { RolloutList, RunEvent, RunReport } from '@aworld-train/core'
import { createHttpRuns, exportRun } from '@aworld-train/dashboard'
import type { Browser } from 'playwright-core'
import { writeRun } from '../../packages/dashboard/src/testing/write-run.ts'
import { openBrowser } from '../../test/dashboard/browser.ts'
import { openPage, type WatchedPage } from '../dashboard/open-page.ts'
import { serveRun } from '../dashboard/served-run.ts'
import { writeLongRun } from '../dashboard/write-long-run.ts'
import { startProcess } from '../gateway/peers.ts'
import { cpuOf } from '../gateway/process-tree.ts'
import { type BenchRow, type BenchSuite, compare, spreadOf } from '../suite.ts'

interface Found {
  readonly rows: readonly BenchRow[]
  readonly notes?: readonly string[]
}

const parts: Readonly<Record<string, (browser: Browser, rounds: number) => Promise<Found>>> = {
  events: measureEvents,
  long: measureLongRun,
  tokens: measureTokens,
  training: measureTraining,
}

/** The dashboard in Chromium under load: `npm run bench -- dashboard [part] [rounds]`, all of it in five rounds by default. */
export const dashboard: BenchSuite = {
  async run(args) {
    const named = args.filter((arg) => parts[arg])
    const rounds = Number(args.find((arg) => /^\d+$/.test(arg)) ?? 5)
    const rows: BenchRow[] = []
    const notes: string[] = []
    const browser = await openBrowser()
    try {
      for (const [name, measure] of Object.entries(parts)) {
        if (named.length > 0 && !named.includes(name)) continue
        process.stdout.write(`${name} …\n`)
        const found = await measure(browser, rounds)
        rows.push(...found.rows)
        notes.push(...(found.notes ?? []))
      }
    } finally {
      await browser.close()
    }
    return { rows, notes }
  },
}

const lower = (measure: string, unit: string, values: readonly number[], atMost?: number): BenchRow => ({
  ...{ measure, unit, better: 'lower', ours: spreadOf(values), peers: {} },
  ...(atMost !== undefined && { bound: { atMost } }),
})

const eventsOfRound = 100
const manyEvents = 1_000_000

/** From the moment in which the process of a run appends an event until the frame that shows it has been drawn. */
async function measureEvents(browser: Browser, rounds: number): Promise<Found> {
  const rows: BenchRow[] = []
  for (const before of [0, manyEvents]) {
    const opened: number[] = []
    const waits: { median: number; p95: number }[] = []
    for (let round = 0; round < rounds; round++) {
      const script = fileURLToPath(new URL('../dashboard/write-events.ts', import.meta.url))
      await using writer = startProcess(process.execPath, [script, String(eventsOfRound), String(before)])
      const [path] = (await once(writer.child, 'message')) as [string]
      await using served = await serveRun(path)
      const page = await openPage(browser)
      opened.push(await page.open(served.url, 'main h1'))
      writer.child.send('begin')
      const [times] = (await once(writer.child, 'message')) as [number[]]
      waits.push(await eventsToPixels(page, new Map(times.map((at, index) => [4 + index, at]))))
      writer.child.send('end')
      await page.page.context().close()
    }
    const behind = before === 0 ? '' : `, behind ${before.toLocaleString('en')} others`
    rows.push(
      lower(
        `event to pixel${behind}, median`,
        'ms',
        waits.map(({ median }) => median),
      ),
      lower(
        `event to pixel${behind}, p95`,
        'ms',
        waits.map(({ p95 }) => p95),
        250,
      ),
      lower(`first page of a live run${behind}`, 'ms', opened, 1_000),
    )
  }
  return { rows }
}

/** An event is on screen with the first frame that shows it, or one behind it; `at` says when each step was written. */
async function eventsToPixels({ evaluate }: WatchedPage, at: ReadonlyMap<number, number>): Promise<{ median: number; p95: number }> {
  const shown = await evaluate<[step: number, at: number][]>('window.stepsShown')
  const waits = [...at].map(([step, written]) => {
    const first = shown.find(([each]) => each >= step)
    if (!first) throw new Error(`Step ${step} was never on screen.`)
    return first[1] - written
  })
  waits.sort((a, b) => a - b)
  return { median: spreadOf(waits).median, p95: waits[Math.ceil(0.95 * waits.length) - 1]! }
}

const rolloutsOfLongRun = 100_000

/** The pages of a run of 100,000 rollouts, each time in a new server and a new page. */
async function measureLongRun(browser: Browser, rounds: number): Promise<Found> {
  const folder = await mkdtemp(join(tmpdir(), 'aworld-train-dashboard-'))
  try {
    const path = join(folder, 'long-20270115-080000')
    await writeLongRun(path, rolloutsOfLongRun)
    const first: number[] = []
    const summaries: number[] = []
    const memory: number[] = []
    const shown: Record<string, number[]> = {}
    const answered: Record<string, number[]> = {}
    const of = (table: Record<string, number[]>, name: string) => {
      table[name] ??= []
      return table[name]
    }
    for (let round = 0; round < rounds; round++) {
      {
        await using served = await serveRun(path)
        summaries.push(await served.time('summary'))
      }
      await using served = await serveRun(path)
      const page = await openPage(browser)
      first.push(await page.open(served.url, 'main h1'))
      const { hash } = new URL(served.url)
      const step = 300 + round
      of(shown, 'the groups of a step').push(await page.go(`${hash}/step/${step}`, 'main h1', `Step ${step}`))
      of(shown, 'a filter on them').push(await page.go(`${hash}/step/${step}?kind=hard`, '.bar [aria-pressed="true"]', 'hard'))
      of(shown, 'a rollout').push(await page.go(`${hash}/rollout/train/${step}/3/1`, '.timeline'))
      of(shown, 'its tokens').push(await page.go(`${hash}/tokens/train/${step}/3/1`, '.stream canvas'))
      for (const [name, request] of [
        ['a filter', `rollouts?kind=hard&maxReward=0&split=train`],
        ['a filter that nothing passes', 'rollouts?split=train&kind=hard&minReward=2'],
        ['a step', `rollouts?split=train&step=${step + 100}`],
        ['an episode', `rollout?key=train/${step + 100}/3/1`],
      ] as const)
        of(answered, name).push(await served.time(request))
      memory.push(served.mostMegabytes())
      await page.page.context().close()
    }
    const run = `of ${rolloutsOfLongRun.toLocaleString('en')} rollouts`
    return {
      rows: [
        lower(`first page ${run}`, 'ms', first, 1_000),
        lower(`first summary ${run}, server alone`, 'ms', summaries),
        ...Object.entries(shown).map(([name, times]) => lower(`${name} ${run}, page`, 'ms', times, 100)),
        ...Object.entries(answered).map(([name, times]) => lower(`${name} ${run}, server`, 'ms', times, 100)),
        lower(`most memory of the server ${run}`, 'MB', memory, 150),
      ],
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const longTokens = 131_072
const turnsOfWheel = 150

/** Turns the wheel over a rollout of 131,072 tokens: a line at a time, a screen at a time, then jumps from end to end. */
async function measureTokens(browser: Browser, rounds: number): Promise<Found> {
  await using run = await writeRun({ name: 'long', longTokens })
  const opened: number[] = []
  const longest: number[] = []
  let over = 0
  await using served = await serveRun(run.path)
  for (let round = 0; round < rounds; round++) {
    const page = await openPage(browser)
    opened.push(await page.open(`${served.url}/tokens/train/2/0/0?at=0`, '.stream canvas'))
    await page.page.mouse.move(400, 500)
    await sleep(500)
    await page.evaluate(
      'window.frames = []; (() => { let last = performance.now(); const note = (at) => { window.frames.push(at - last); last = at; requestAnimationFrame(note) }; requestAnimationFrame(note) })()',
    )
    for (const pixels of [60, 800])
      for (let turn = 0; turn < turnsOfWheel; turn++) {
        await page.page.mouse.wheel(0, pixels)
        await sleep(8)
      }
    for (const share of [1, 0, 0.5, 0.1, 0.9]) {
      await page.evaluate(`scrollTo(0, ${share} * document.documentElement.scrollHeight)`)
      await sleep(100)
    }
    const frames = await page.evaluate<number[]>('window.frames.slice(1)')
    longest.push(Math.max(...frames))
    over += frames.filter((ms) => ms > 50).length
    await page.page.context().close()
  }
  return {
    rows: [
      lower(`longest frame while ${longTokens.toLocaleString('en')} tokens scroll`, 'ms', longest),
      lower('frames above 50 ms of all rounds', 'frames', [over], 0),
      lower('page of those tokens', 'ms', opened),
    ],
  }
}

const watchedStep = 10
const arms = ['alone', 'readers', 'blank', 'pages'] as const
type Arm = (typeof arms)[number]
/** Pages of a step that is to come, that goes on, and that is over, in this order. */
const places = ['', `/step/${watchedStep}`, `/tokens/train/${watchedStep}/0/0`]
const root = fileURLToPath(new URL('../..', import.meta.url))

/**
 * The main example with three pages open (overview, groups of a step, tokens of a rollout), with three blank pages in the same browser, with
 * three clients that ask for the same without a browser, and alone; in turns. The same seed makes the same work. The time is that of the steps
 * from the watched one on: by then the pages stand open, while to open one takes a browser more than a second of CPU.
 */
async function measureTraining(browser: Browser, rounds: number): Promise<Found> {
  const wall: Record<Arm, number[]> = { alone: [], readers: [], blank: [], pages: [] }
  const cpu: Record<Arm, number[]> = { alone: [], readers: [], blank: [], pages: [] }
  const browserCpu: Record<Arm, number[]> = { alone: [], readers: [], blank: [], pages: [] }
  const waits: number[] = []
  const exported: { megabytes: number; openedMs: number }[] = []
  for (let round = 0; round < rounds; round++) {
    // Each arm is first, second and last in turns.
    for (const arm of arms.map((_, index) => arms[(index + round) % arms.length]!)) {
      const before = chromiumCpu()
      const { report, openMs, p95, chromiumMs, file } = await trainOnce(browser, arm)
      wall[arm].push(openMs / 1000)
      cpu[arm].push(report.times.cpuMs / 1000)
      browserCpu[arm].push((chromiumMs - before) / 1000)
      if (p95 !== null) waits.push(p95)
      exported.push(file)
      process.stdout.write(`  ${arm} ${(openMs / 1000).toFixed(1)} s of ${(report.times.wallMs / 1000).toFixed(1)}\n`)
    }
  }
  const row = (measure: string, values: Record<Arm, number[]>, arm: Arm, isBound: boolean): BenchRow => {
    const ours = spreadOf(values[arm])
    const blank = arm === 'pages' && { 'blank pages': compare(ours, spreadOf(values.blank)) }
    const bound = isBound && { bound: { atMost: 1.03, of: 'alone' } }
    return { measure, unit: 's', better: 'lower', ours, peers: { alone: compare(ours, spreadOf(values.alone)), ...blank }, ...bound }
  }
  const chromium = spreadOf(browserCpu.pages)
  return {
    rows: [
      row(`main example from step ${watchedStep} on with three pages in Chromium`, wall, 'pages', true),
      row(`main example from step ${watchedStep} on with three readers without a browser`, wall, 'readers', true),
      row('its CPU with three pages in Chromium', cpu, 'pages', false),
      row('its CPU with three readers without a browser', cpu, 'readers', false),
      {
        ...{ measure: 'CPU of Chromium with three pages', unit: 's', better: 'lower', ours: chromium },
        peers: { 'blank pages': compare(chromium, spreadOf(browserCpu.blank)) },
      },
      lower('event to pixel while the main example trains, p95 of the steps', 'ms', waits, 250),
      lower(
        'its run as one file',
        'MB',
        exported.map(({ megabytes }) => megabytes),
        6,
      ),
      lower(
        'first page of that file',
        'ms',
        exported.map(({ openedMs }) => openedMs),
        2_000,
      ),
    ],
    notes: ['training: the four in turns; Chromium, the readers and the training share the cores of the machine'],
  }
}

/** Milliseconds of CPU that Chromium has taken. */
function chromiumCpu(): number {
  const children = readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8').trim().split(' ').map(Number)
  const chromium = children.filter((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('chromium'))
  return chromium.reduce((sum, pid) => sum + cpuOf(pid).tree, 0)
}

interface Trained {
  readonly report: RunReport
  /** From the start of the watched step to the end of the run. */
  readonly openMs: number
  readonly p95: number | null
  readonly chromiumMs: number
  readonly file: { readonly megabytes: number; readonly openedMs: number }
}

async function trainOnce(browser: Browser, arm: Arm): Promise<Trained> {
  const below = await mkdtemp(join(tmpdir(), 'aworld-train-dashboard-'))
  try {
    const args = ['train', join(root, 'examples/periodic-table'), '--seed', '1', '--run-path', below]
    await using training = startProcess(process.execPath, [join(root, 'packages/cli/src/main.ts'), ...args])
    const exited = once(training.child, 'exit')
    const output = createInterface({ input: training.child.stdout! })
    let url: URL | null = null
    for await (const line of output) {
      const address = /^watch +(http\S+)/.exec(line)?.[1]
      if (address !== undefined) {
        url = new URL(address)
        break
      }
    }
    if (!url) throw new Error(`The training named no address: ${training.errors()}`)
    training.child.stdout!.resume()
    const ending = new AbortController()
    const pages: WatchedPage[] = []
    let openedAt = 0
    if (arm === 'pages' || arm === 'blank') {
      for (const place of places) {
        const page = await openPage(browser)
        await page.page.goto(arm === 'blank' ? 'about:blank' : `${url.href}${place}`)
        pages.push(page)
      }
      openedAt = Date.now()
    } else if (arm === 'readers') for (let reader = 0; reader < places.length; reader++) void read(url, reader, ending.signal)
    const [code] = (await exited) as [number | null]
    ending.abort()
    if (code !== 0) throw new Error(`The training ended with ${code}: ${training.errors()}`)
    const id = readdirSync(below)[0]!
    const path = join(below, id)
    const report = JSON.parse(readFileSync(join(path, 'report.json'), 'utf8')) as RunReport
    const lines = readFileSync(join(path, 'events.jsonl'), 'utf8').split('\n').filter(Boolean)
    const events = lines.map((line) => JSON.parse(line) as RunEvent)
    const starts = events.flatMap((event) => (event.type === 'step-start' ? [event] : []))
    const watchedFrom = starts.find(({ step }) => step === watchedStep)!.at
    if (openedAt > watchedFrom) throw new Error(`The pages were open ${openedAt - watchedFrom} ms after step ${watchedStep} had begun.`)
    // The page may have come while the first steps ran.
    const at = new Map(starts.slice(2).map((event) => [event.step, event.at]))
    const p95 = arm === 'pages' ? (await eventsToPixels(pages[0]!, at)).p95 : null
    // The processes of pages end with them.
    const chromiumMs = chromiumCpu()
    for (const { page } of pages) await page.context().close()
    const file = join(below, 'run.html')
    const { bytes } = await exportRun([path], file)
    const page = await openPage(browser)
    const openedMs = await page.open(`${pathToFileURL(file).href}#/${id}`, '.headline .figure')
    await page.page.context().close()
    return { report, openMs: events.at(-1)!.at - watchedFrom, p95, chromiumMs, file: { megabytes: bytes / 1e6, openedMs } }
  } finally {
    await rm(below, { recursive: true, force: true })
  }
}

/** Asks for what a page shows, as the page does: after a change, at most once a second, and of a step until it is trained. */
async function read(url: URL, reader: number, signal: AbortSignal): Promise<void> {
  const run = createHttpRuns(url.origin, url.searchParams.get('token')!).run(url.hash.slice(2))
  const ofStep = () => run.rollouts({ split: 'train', step: watchedStep, limit: 2_000 })
  const ofRollout = async () => {
    const key = `train/${watchedStep}/0`
    const [, list] = await Promise.all([run.rollout(`${key}/0`), run.rollouts({ group: key, limit: 2_000 })])
    return list
  }
  const ask = [null, ofStep, ofRollout][reader]
  try {
    const { eventsEnd } = await run.summary()
    let askedAt = 0
    let isTrained = false
    for await (const _ of run.follow(eventsEnd, signal)) {
      if (performance.now() - askedAt < 1_000) continue
      askedAt = performance.now()
      await run.summary()
      const list: RolloutList | undefined = isTrained ? undefined : await ask?.()
      isTrained ||= (list?.samples.length ?? 0) > 0
    }
  } catch {
    // The server ends with the training.
  }
}
