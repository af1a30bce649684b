// @module-tag quick
import type { Workspace } from '@aworld-train/core'
import { openSandbox } from '@aworld-train/tools/sandbox'
import { expect, onTestFinished, test, vi } from 'vitest'
import { browserFolders } from '../../packages/tools/src/servers/browser/browser-folders.ts'
import { Browsers } from '../../packages/tools/src/servers/browser/browsers.ts'
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

test('where leases browse, the browser of the next starts with it, and answers as a fresh one', { timeout }, async () => {
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
    await calling!.close()
  }
  await sandbox.close()
})
