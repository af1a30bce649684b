import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Workspace } from '@aworld-train/core'
import { openOutward } from '@aworld-train/http'
import { openSandbox } from '@aworld-train/tools/sandbox'
import { expect, onTestFinished, test, vi } from 'vitest'
import { browserFolders } from '../../packages/tools/src/servers/browser/browser-folders.ts'
import { Browsers } from '../../packages/tools/src/servers/browser/browsers.ts'
import { html, openStandIn } from '../../packages/tools/src/testing/stand-in.ts'
import { type Desk, type Desks, openDesks, timeout } from './browser-desk.ts'
import { commandsBelowUs } from './processes.ts'

const program = /^node \S*cli\.js/
const chromium = /^\/usr\/lib\/chromium\/(?!.*--type=)/
const until = (condition: () => boolean) => vi.waitUntil(condition, { timeout: 120_000, interval: 100 })
const untilReady = async () => {
  await until(() => commandsBelowUs(/^\/usr\/lib\/chromium\/.*--type=gpu-process/).length > 0)
}

const pages = { 'index.html': '<title>Shop</title><h1>Fish</h1><a href="/">Again</a>' }
const home = { url: 'http://127.0.0.1:8000/' }

/** What an agent reads that opens a second tab first, which a browser with a tab more would show. */
async function browse({ call, run }: Desk): Promise<string> {
  const answers = [
    await call('browser_tabs', { action: 'new', url: home.url }),
    await call('browser_snapshot'),
    await call('browser_click', { target: 'a' }),
    await call('browser_take_screenshot'),
    await call('browser_tabs', { action: 'list' }),
    await run('ls -A . .playwright-mcp; cat .playwright-mcp/*.yml'),
  ]
  return answers.join('\n')
}

/** Opens desks of which one has browsed, with what its agent read. */
async function browseFirst(options?: Parameters<typeof openDesks>[0]): Promise<{ desks: Desks; fresh: string }> {
  const desks = await openDesks(options)
  onTestFinished(() => desks.close())
  let fresh = ''
  await desks.with('fresh', pages, async (desk) => {
    expect(commandsBelowUs(program)).toEqual([])
    fresh = await browse(desk)
  })
  expect(fresh).toContain('heading "Fish" [level=1] [ref=e2]')
  return { desks, fresh }
}

test('where leases browse, the browser of the next starts with it, and answers as a fresh one', { tags: ['quick'], timeout }, async () => {
  const { desks, fresh } = await browseFirst()
  await desks.with('early', pages, async (desk) => {
    await untilReady()
    expect(await browse(desk)).toBe(fresh)
  })
})

test('one that died while it waited is another for its first call', { timeout }, async () => {
  const { desks, fresh } = await browseFirst()
  for (const victim of [program, chromium])
    await desks.with(String(victim), pages, async (desk) => {
      await untilReady()
      const [pid] = commandsBelowUs(victim)
      process.kill(pid!, 'SIGKILL')
      await until(() => !commandsBelowUs(victim).includes(pid!))
      expect(await browse(desk)).toBe(fresh)
    })
})

test('one that no agent called is the last, until an agent calls another', { timeout }, async () => {
  const { desks, fresh } = await browseFirst()
  await desks.with('silent', pages, untilReady)
  expect(commandsBelowUs(program)).toEqual([])
  await desks.with('late', pages, async (desk) => {
    expect(commandsBelowUs(program)).toEqual([])
    expect(await browse(desk)).toBe(fresh)
  })
  await desks.with('early', pages, untilReady)
})

/** Opens desks of which two have browsed, so that a browser waits for the next. */
async function browseTwice(options: Parameters<typeof openDesks>[0] = {}): Promise<{ desks: Desks; fresh: string }> {
  const { desks, fresh } = await browseFirst({ readyBrowsers: 1, ...options })
  await desks.with('second', pages, async (desk) => expect(await browse(desk)).toBe(fresh))
  await untilReady()
  expect(commandsBelowUs(program)).toHaveLength(1)
  return { desks, fresh }
}

test('one waits for the next lease, which has it alone, and ends with the server', { timeout }, async () => {
  const { desks, fresh } = await browseTwice()
  const [waiting] = commandsBelowUs(chromium)
  await desks.with('third', pages, async (desk) => {
    expect(await browse(desk)).toBe(fresh)
    expect(commandsBelowUs(chromium)).toContain(waiting)
  })
  await until(() => commandsBelowUs(chromium).length === 1)
  expect(commandsBelowUs(chromium)).not.toContain(waiting)
  await desks.close()
  expect(commandsBelowUs(/^(?:node|\/usr\/lib\/chromium|bwrap)/)).toEqual([])
})

test('one that died while it waited for a lease is not handed out', { tags: ['quick'], timeout }, async () => {
  const { desks, fresh } = await browseTwice()
  for (const victim of [program, chromium]) {
    const [pid] = commandsBelowUs(victim)
    process.kill(pid!, 'SIGKILL')
    await until(() => !commandsBelowUs(victim).includes(pid!))
    await desks.with(String(victim), pages, async (desk) => expect(await browse(desk)).toBe(fresh))
    await untilReady()
  }
})

test('leases without a browser, and those whose commands have the web, leave it to others', { timeout }, async () => {
  const { desks, fresh } = await browseTwice()
  const waiting = commandsBelowUs(program)
  await desks.with('terminal', pages, async () => expect(commandsBelowUs(program)).toEqual(waiting), { servers: ['terminal-server'] })
  await desks.with('net', pages, async (desk) => expect(await browse(desk)).toBe(fresh), { net: true })
  expect(commandsBelowUs(program)).toEqual(waiting)
})

test('requests of one that waited are those of its lease, in the recording and in its replay', { timeout }, async () => {
  const directory = await mkdtemp(join(tmpdir(), 'ready-browsers-'))
  let visits = 0
  const site = await openStandIn(() => html(`<title>Shop</title><h1>Visit ${++visits}</h1><form method="post"><button>Buy</button></form>`))
  const world = { services: [], web: { mirrors: { 'https://shop.test': site.url } } }
  const shop = async ({ call }: Desk) => {
    const answers = [await call('browser_navigate', { url: 'https://shop.test/' }), await call('browser_snapshot')]
    await call('browser_click', { target: 'button' })
    return [...answers, await call('browser_snapshot')].join('\n')
  }
  const answers: string[] = []
  for (const mode of ['record', 'replay'] as const) {
    const outward = await openOutward({ ...world, cassette: { path: join(directory, 'world.jsonl'), mode } })
    const { desks } = await browseTwice({ outward })
    const [waiting] = commandsBelowUs(chromium)
    await desks.with('pooled', {}, async (desk) => {
      answers.push(await shop(desk))
      expect(commandsBelowUs(chromium)).toContain(waiting)
    })
    await desks.with('next', {}, async (desk) => answers.push(await shop(desk)))
    await desks.close()
    await outward.close()
  }
  await site.close()
  await rm(directory, { recursive: true })
  expect(answers[0]).toMatch(/Visit 1[\s\S]*Visit 2/)
  expect(answers).toEqual([answers[0], answers[0], answers[0], answers[0]])
  expect(visits).toBe(2)
})

test('one that nobody has called gives its memory to a call of another lease', { timeout }, async () => {
  const sandbox = await openSandbox({ tier: 'bubblewrap', readable: browserFolders() })
  const browsers = new Browsers({ tier: 'bubblewrap', memoryBytes: 600 * 2 ** 20 })
  const signal = new AbortController().signal
  const way = { port: 3128, credentials: { username: 'browser', password: 'word' }, spki: '' }
  const open = async (workspace: Workspace) =>
    await browsers
      .of(workspace)
      .call(
        'browser_navigate',
        { url: 'data:text/html,<title>Page</title>' },
        { signal, egress: async () => way, desktop: async () => null },
      )
  const [first, ...others] = await Promise.all(Array.from({ length: 5 }, () => sandbox.workspace({}, signal)))
  await open(first!)
  await first!.close()
  for (const isReady of [true, false]) {
    const [waiting, calling] = others.splice(0, 2)
    const preparing = browsers.prepare(waiting!, way, signal)
    if (isReady) await preparing
    expect(await open(calling!)).toContain('Page Title: Page')
    await preparing
    expect(commandsBelowUs(program)).toHaveLength(1)
    expect(browsers.of(waiting!).isReady()).toBe(false)
    await calling!.close()
  }
  await sandbox.close()
})
