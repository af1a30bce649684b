import type { Workspace } from '@aworld-train/core'
import { openSandbox } from '@aworld-train/tools/sandbox'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { browserFolders } from '../../packages/tools/src/servers/browser/browser-folders.ts'
import { Browsers } from '../../packages/tools/src/servers/browser/browsers.ts'
import { type Desk, type Desks, openDesks, timeout, untilServed } from './browser-desk.ts'

let desks: Desks
beforeAll(async () => {
  desks = await openDesks()
})
afterAll(() => desks.close())

/** Answers of a server in Python that no server of files gives: without end, of any size, and with headers. */
const hostile = `
import http.server, time
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.0'
    def log_message(self, *_): pass
    def do_GET(self):
        if self.path == '/never': time.sleep(3600)
        self.send_response(200)
        if self.path == '/download':
            self.send_header('Content-Disposition', 'attachment; filename=large.bin')
            self.end_headers()
            for _ in range(1024): self.wfile.write(bytes(2 ** 20))
            return
        self.send_header('Content-Type', 'text/html')
        self.end_headers()
        self.wfile.write(open('site/index.html', 'rb').read())
http.server.ThreadingHTTPServer(('127.0.0.1', 8001), Handler).serve_forever()
`
const hostilePage = { url: 'http://127.0.0.1:8001/' }

async function withHostileDesk(rollout: string, page: string, work: (desk: Desk) => Promise<void>): Promise<void> {
  await desks.with(rollout, { 'index.html': page, 'serve.py': hostile }, async (desk) => {
    await desk.run(`python3 site/serve.py >/dev/null 2>&1 & ${untilServed(8001)}`)
    await work(desk)
  })
}

describe('a page', () => {
  test('that never answers, and one whose script never ends, end their calls', { timeout: 2 * timeout }, async () => {
    await withHostileDesk('endless', '<title>Loop</title>', async ({ call }) => {
      expect(await call('browser_navigate', { url: 'http://127.0.0.1:8001/never' })).toMatch(/^error: .*Timeout 30000ms exceeded/)
      expect(await call('browser_navigate', hostilePage)).toContain('Page Title: Loop')
      expect(await call('browser_evaluate', { function: '() => { for (;;); }' })).toMatch(/^error: The browser did not answer within 50 s/)
      expect(await call('browser_navigate', hostilePage)).toMatch(/^\[The browser had ended[\s\S]*Page Title: Loop/)
    })
  })

  test('that opens dialogs and prints waits for nobody else', { timeout }, async () => {
    const page = `<title>Ask</title><button onclick="alert('one'); print(); document.title = String(confirm('two'))">Go</button>
      <script>onbeforeunload = (event) => event.preventDefault()</script>`
    await withHostileDesk('dialogs', page, async ({ call }) => {
      await call('browser_navigate', hostilePage)
      expect(await call('browser_click', { target: 'button' })).toContain('"alert" dialog with message "one"')
      expect(await call('browser_snapshot')).toContain('browser_handle_dialog')
      expect(await call('browser_handle_dialog', { accept: true })).toContain('"confirm" dialog with message "two"')
      expect(await call('browser_handle_dialog', { accept: false })).toContain('Page Title: false')
      const left = await call('browser_navigate', { url: 'about:blank' })
      if (left.includes('"beforeunload" dialog')) await call('browser_handle_dialog', { accept: true })
      expect(await call('browser_tabs', { action: 'list' })).toContain('about:blank')
    })
  })

  test('that opens a thousand tabs takes the memory of its lease, and no more', { timeout }, async () => {
    const page = '<title>Many</title><button onclick="for (let count = 0; count < 1000; count++) open(\'/\')">Go</button>'
    await withHostileDesk('tabs', page, async ({ call, run }) => {
      await call('browser_navigate', hostilePage)
      await call('browser_evaluate', { function: '() => { for (let count = 0; count < 1000; count++) open("/") }' })
      await call('browser_snapshot')
      await call('browser_close')
      expect(await call('browser_navigate', hostilePage)).toContain('Page Title: Many')
      expect(await run('echo here')).toContain('here')
    })
  })

  test('that takes all memory crashes alone', { timeout }, async () => {
    await withHostileDesk('memory', '<title>Large</title>', async ({ call, run }) => {
      await call('browser_navigate', hostilePage)
      const script = '() => { const kept = []; for (;;) kept.push(new Uint8Array(5e7).fill(1)) }'
      expect(await call('browser_evaluate', { function: script })).toMatch(/^error: The (?:page|browser) /)
      expect(await call('browser_navigate', hostilePage)).toContain('Page Title: Large')
      expect(await run('echo here')).toContain('here')
    })
  })

  test('that downloads a gigabyte fills the disk of its lease, and its browser goes on', { timeout }, async () => {
    await withHostileDesk('download', '<title>Store</title><a href="/download">Get</a>', async ({ call, run }) => {
      await call('browser_navigate', hostilePage)
      await call('browser_click', { target: 'a' })
      await call('browser_wait_for', { time: 20 })
      expect(await call('browser_navigate', hostilePage)).toContain('Page Title: Store')
      const [kilobytes] = /^\d+/m.exec(await run('du -sxk /workspace /tmp 2>/dev/null | sort -n | tail -1')) ?? []
      expect(Number(kilobytes)).toBeLessThan(300_000)
    })
  })

  test('of great height has a picture in its file, and beside its answer if it is small', { timeout }, async () => {
    const page = `<title>High</title><canvas width="1200" height="1400"></canvas><script>
      const context = document.querySelector('canvas').getContext('2d'), image = context.createImageData(1200, 1400)
      for (let index = 0; index < image.data.length; index++) image.data[index] = index % 4 === 3 ? 255 : Math.random() * 256
      context.putImageData(image, 0, 0)</script>`
    await withHostileDesk('picture', page, async ({ call, client, run }) => {
      await call('browser_navigate', hostilePage)
      const { content } = await client.callTool({ name: 'browser-server__browser_take_screenshot', arguments: { fullPage: true } })
      expect(content).toEqual([{ type: 'text', text: expect.stringMatching(/page-1\.png[\s\S]*The picture is in its file alone/) }])
      expect(await run('wc -c < .playwright-mcp/page-1.png')).toMatch(/^\d{7}/)
    })
  })
})

test('a slow page of one lease delays no other', { timeout }, async () => {
  await withHostileDesk('slow', '<title>Slow</title>', (slow) =>
    withHostileDesk('quick', '<title>Quick</title>', async (quick) => {
      for (const { call } of [slow, quick]) await call('browser_navigate', hostilePage)
      const waiting = slow.call('browser_navigate', { url: 'http://127.0.0.1:8001/never' })
      let isOver = false
      void waiting.then(() => {
        isOver = true
      })
      expect(await quick.call('browser_snapshot')).toContain('Page Title: Quick')
      expect(isOver).toBe(false)
      await waiting
    }),
  )
})

test('a browser for which there is no memory is refused, and runs when another has ended', { timeout: 2 * timeout }, async () => {
  const sandbox = await openSandbox({ tier: 'bubblewrap', readable: browserFolders() })
  const browsers = new Browsers({ tier: 'bubblewrap', memoryBytes: 600 * 2 ** 20 })
  const signal = new AbortController().signal
  const egress = async () => ({ port: 3128, credentials: { username: 'browser', password: 'word' }, spki: '' })
  const open = async (workspace: Workspace) =>
    await browsers
      .of(workspace)
      .call('browser_navigate', { url: 'data:text/html,<title>Page</title>' }, { signal, egress, desktop: async () => null })
  const [first, second] = [await sandbox.workspace({}, signal), await sandbox.workspace({}, signal)]
  expect(await open(first)).toContain('Page Title: Page')
  await expect(open(second)).rejects.toThrow(/no memory for another browser now: 1 run, and \d+ MB are free/)
  const waiting = open(second)
  await first.close()
  expect(await waiting).toContain('Page Title: Page')
  await sandbox.close()
})
