import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openDesks, timeout } from './browser-desk.ts'

/** A browser of this machine outside of every jail, and the address that it prints. */
async function openBrowser() {
  const profile = await mkdtemp(join(tmpdir(), 'profile-'))
  const options = ['--remote-debugging-port=0', `--user-data-dir=${profile}`, '--no-sandbox', '--disable-dev-shm-usage', 'about:blank']
  const child = spawn('/usr/lib/chromium/chromium-headless-shell', options, { stdio: ['ignore', 'ignore', 'pipe'] })
  const address = await new Promise<string>((resolve, reject) => {
    let errors = ''
    child.stderr.on('data', (chunk) => {
      errors += chunk
      const [, found] = /DevTools listening on (ws:\S+)/.exec(errors) ?? []
      if (found !== undefined) resolve(found)
    })
    child.once('close', () => reject(new Error(errors)))
  })
  return {
    address,
    async close() {
      const closed = new Promise((resolve) => child.once('close', resolve))
      child.kill('SIGKILL')
      await closed
      await rm(profile, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

test('a browser elsewhere serves each lease with pages of its own, until it ends', { timeout }, async () => {
  const browser = await openBrowser()
  const { address } = browser
  const page = (word: string) => ({ url: `data:text/html,<title>${word}</title><h1>${word}</h1>` })
  for (const browserUrl of [address, `http://${new URL(address).host}`]) {
    const desks = await openDesks({ browserUrl })
    await desks.with('one', {}, (one) =>
      desks.with('two', {}, async (two) => {
        await Promise.all([one.call('browser_navigate', page('fig')), two.call('browser_navigate', page('plum'))])
        expect(await one.call('browser_tabs', { action: 'list' })).not.toContain('plum')
        expect(await two.call('browser_snapshot')).toContain('heading "plum"')
        expect(await two.run('cat /tmp/browser.json')).not.toContain(new URL(address).pathname)
      }),
    )
    await desks.close()
  }
  await browser.close()
  const desks = await openDesks({ browserUrl: `http://${new URL(address).host}` })
  await desks.with('three', {}, async ({ call }) => {
    expect(await call('browser_navigate', page('pear'))).toMatch(/^error: The browser at BROWSER_CDP_URL does not answer/)
  })
  await desks.close()
})
