import { LeaseAnswer, type Sandbox } from '@aworld-train/core'
import { openOutward } from '@aworld-train/http'
import { modelServices, modelSettings } from '@aworld-train/tools'
import { openSandbox } from '@aworld-train/tools/sandbox'
import type { Client } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { browserFolders } from '../../packages/tools/src/servers/browser/browser-folders.ts'
import { toolServers } from '../../packages/tools/src/table.ts'
import type { ChatRequest } from '../../packages/tools/src/testing/model-context.ts'
import {
  callTool,
  connectClient,
  leaseOpen,
  openTestServer,
  request,
  type TestServer,
} from '../../packages/tools/src/testing/open-test-server.ts'
import { json, openStandIn, type StandIn } from '../../packages/tools/src/testing/stand-in.ts'
import { commandsBelowUs, unreapedBelowUs } from './processes.ts'

let sandbox: Sandbox
let server: TestServer
let model: StandIn
let outward: Awaited<ReturnType<typeof openOutward>>
/** What the model of browser_use answers to a request. */
let answers: (request: ChatRequest) => object = () => ({ role: 'assistant', content: 'Done.' })
beforeAll(async () => {
  sandbox = await openSandbox({ tier: 'bubblewrap', readable: browserFolders() })
  model = await openStandIn(({ body }) => json({ choices: [{ message: answers(JSON.parse(body) as ChatRequest), finish_reason: 'stop' }] }))
  const settings = new Map([
    ['BROWSERUSE_LLM_BASE_URL', `${model.url}/v1`],
    ['BROWSERUSE_LLM_MODEL_NAME', 'a-model'],
  ])
  outward = await openOutward({ services: modelServices(settings) })
  const models = { browseruse: modelSettings(settings, 'browseruse')! }
  server = await openTestServer({ sandbox, servers: toolServers, outward, models })
})
afterAll(async () => {
  await server.close()
  await outward.close()
  await model.close()
  await sandbox.close()
  expect(unreapedBelowUs()).toEqual([])
})

/** A browser starts in two seconds. This allows for a machine under heavy load. */
const timeout = 240_000

interface Desk {
  readonly id: string
  readonly client: Client
  call(tool: string, input?: Record<string, unknown>): Promise<string>
  /** Runs a command in the terminal of the lease. */
  files(command: string): Promise<string>
}

/** A lease whose workspace serves `pages` on its own loopback, at port 8000. */
async function openDesk(rollout: string, pages: Readonly<Record<string, string>> = {}): Promise<Desk> {
  const { id, token } = LeaseAnswer.parse(await (await request(server, 'POST', '/v1/leases', { ...leaseOpen, rollout })).json())
  for (const [name, text] of Object.entries(pages)) await request(server, 'PUT', `/v1/leases/${id}/files/site/${name}`, Buffer.from(text))
  const client = await connectClient(server.url, { token })
  if (Object.keys(pages).length > 0) {
    const serve =
      'python3 -m http.server 8000 --bind 127.0.0.1 --directory site >/dev/null 2>&1 & until curl -so /dev/null 127.0.0.1:8000; do sleep 0.1; done'
    await callTool(client, 'terminal-server__execute_command', { command: serve })
  }
  return {
    id,
    client,
    call: (tool, input = {}) => callTool(client, `browser-server__${tool}`, input),
    files: (command) => callTool(client, 'terminal-server__execute_command', { command, output_format: 'text' }),
  }
}

async function withDesk(rollout: string, pages: Readonly<Record<string, string>>, work: (desk: Desk) => Promise<void>): Promise<void> {
  const desk = await openDesk(rollout, pages)
  try {
    await work(desk)
  } finally {
    await desk.client.close()
    await request(server, 'DELETE', `/v1/leases/${desk.id}`)
  }
}

const home = { url: 'http://127.0.0.1:8000/' }

test('a model does a task in the browser, step by step, and no more steps than it may', { tags: ['quick'], timeout }, async () => {
  const steps = [
    ['browser_navigate', home],
    ['browser_snapshot', {}],
  ] as const
  answers = ({ messages }) => {
    const last = messages.at(-1)!
    const done = messages.filter(({ role }) => role === 'tool').length
    const [name, input] = steps[done] ?? []
    if (name === undefined) return { role: 'assistant', content: /heading "(.*?)"/.exec(last.content)?.[1] ?? 'nothing' }
    const call = { id: `call-${done}`, type: 'function', function: { name, arguments: JSON.stringify(input) } }
    return { role: 'assistant', content: null, tool_calls: [call] }
  }
  await withDesk('task', { 'index.html': '<h1>Twelve figs</h1>' }, async ({ call }) => {
    const task = 'How many figs does http://127.0.0.1:8000/ have?'
    expect(await call('browser_use', { task })).toBe('Twelve figs')
    expect(await call('browser_use', { task, max_steps: 2 })).toMatch(/^error: The model did not finish the task within 2 steps/)
  })
})

test('two leases browse at once, each with its own pages', { tags: ['quick'], timeout }, async () => {
  const fruits = ['fig', 'plum']
  const snapshots = await Promise.all(
    fruits.map(async (fruit) => {
      let snapshot = ''
      await withDesk(fruit, { 'index.html': `<title>${fruit}</title><h1>One ${fruit}</h1>` }, async ({ call }) => {
        await call('browser_navigate', home)
        snapshot = await call('browser_snapshot')
      })
      return snapshot
    }),
  )
  for (const [index, snapshot] of snapshots.entries()) {
    expect(snapshot).toContain(`heading "One ${fruits[index]}"`)
    expect(snapshot).not.toContain(fruits[1 - index])
  }
})

test('answers hold no clock, their files have the names that they say, and a picture stands beside its text', {
  tags: ['quick'],
  timeout,
}, async () => {
  const pages = { 'index.html': '<title>Sale</title><h1>Fish</h1><script>console.error("sold out")</script><button>Buy</button>' }
  const answers: string[] = []
  for (const rollout of ['once', 'twice'])
    await withDesk(rollout, pages, async ({ call, client, files }) => {
      const shown = await client.callTool({ name: 'browser-server__browser_take_screenshot', arguments: {} })
      expect(shown.content).toEqual([
        { type: 'text', text: expect.stringMatching(/\(\.playwright-mcp\/page-1\.png\)/) },
        expect.objectContaining({ type: 'image', mimeType: 'image/png' }),
      ])
      const texts = [
        await call('browser_navigate', home),
        await call('browser_click', { target: 'button' }),
        await call('browser_console_messages'),
        await call('browser_take_screenshot', { filename: 'shop.png' }),
        await files('ls -A . .playwright-mcp; file=.playwright-mcp/page-1.yml; cat $file; head -c 4 shop.png | tail -c 3'),
      ]
      expect(texts[0]).toContain('[Snapshot](.playwright-mcp/page-1.yml)')
      expect(texts[3]).toContain('](./shop.png)')
      expect(texts[4]).toBe(
        '.:\n.playwright-mcp\nshop.png\nsite\n\n.playwright-mcp:\npage-1.png\npage-1.yml\npage-2.yml\n- generic [active] [ref=e1]:\n  - heading "Fish" [level=1] [ref=e2]\n  - button "Buy" [ref=e3]PNG\n\n[Exit code 0.]',
      )
      answers.push(texts.join('\n'))
    })
  expect(answers[1]).toBe(answers[0])
  expect(answers[0]).not.toMatch(/\d{4}-\d\d-\d\dT/)
})

test('what is no page of the web is not opened, by no tool and no page', { tags: ['quick'], timeout }, async () => {
  const pages = { 'index.html': '<title>Gate</title><a href="file:///etc/passwd">in</a>' }
  await withDesk('gate', pages, async ({ call, client }) => {
    await call('browser_navigate', home)
    for (const url of ['file:///etc/passwd', 'view-source:file:///etc/passwd', 'chrome://crash']) {
      expect(await call('browser_navigate', { url })).toMatch(/^error: The browser does not open/)
      expect(await call('browser_tabs', { action: 'new', url })).toMatch(/^error: The browser does not open/)
    }
    await call('browser_click', { target: 'a' })
    for (const script of [
      'location.href = "file:///etc/passwd"',
      'void open("view-source:file:///etc/passwd")',
      'location.href = "chrome://version"',
    ])
      await call('browser_evaluate', { function: `() => { ${script} }` })
    expect(await call('browser_evaluate', { function: '() => fetch("file:///etc/passwd").then((file) => file.text())' })).toMatch(
      /^error: TypeError: Failed to fetch/,
    )
    expect(await call('browser_tabs', { action: 'list' })).toContain('- 0: (current) [Gate](http://127.0.0.1:8000/)')
    expect(await call('browser_drop', { target: 'a', paths: ['/etc/passwd'] })).toMatch(/^error: .*outside allowed roots/)
    await expect(client.callTool({ name: 'browser-server__browser_run_code_unsafe', arguments: { code: '' } })).rejects.toThrow(
      'Use browser_evaluate',
    )
  })
})

test('a browser that is killed ends its call, and the next call has another one', { tags: ['quick'], timeout }, async () => {
  await withDesk('killed', { 'index.html': '<title>Here</title>' }, async ({ call }) => {
    await call('browser_navigate', home)
    for (const [victim, message] of [
      [/^node \S*cli\.js/, 'ended while it worked'],
      [/^\/usr\/lib\/chromium\/(?!.*--type=)/, 'ended while it worked'],
      [/--type=renderer/, 'The page crashed'],
    ] as const) {
      const waiting = call('browser_wait_for', { time: 5 })
      await vi.waitUntil(() => commandsBelowUs(victim).length > 0, { timeout: 30_000 })
      process.kill(commandsBelowUs(victim)[0]!, 'SIGKILL')
      expect(await waiting).toMatch(new RegExp(`^error: .*${message}.*The next call begins with an empty page`))
      expect(await call('browser_navigate', home)).toContain('Page Title: Here')
    }
  })
  expect(commandsBelowUs(/^(?:node \S*cli\.js|\/usr\/lib\/chromium)/)).toEqual([])
})

/** Answers of a server in Python that `openDesk` cannot give: without end, of any size, and with headers. */
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
  await withDesk(rollout, { 'index.html': page, 'serve.py': hostile }, async (desk) => {
    await desk.files('python3 site/serve.py >/dev/null 2>&1 & until curl -so /dev/null 127.0.0.1:8001; do sleep 0.1; done')
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
    await withHostileDesk('tabs', page, async ({ call, files }) => {
      await call('browser_navigate', hostilePage)
      await call('browser_evaluate', { function: '() => { for (let count = 0; count < 1000; count++) open("/") }' })
      await call('browser_snapshot')
      await call('browser_close')
      expect(await call('browser_navigate', hostilePage)).toContain('Page Title: Many')
      expect(await files('echo here')).toContain('here')
    })
  })

  test('that takes all memory crashes alone', { timeout }, async () => {
    await withHostileDesk('memory', '<title>Large</title>', async ({ call, files }) => {
      await call('browser_navigate', hostilePage)
      const script = '() => { const kept = []; for (;;) kept.push(new Uint8Array(5e7).fill(1)) }'
      expect(await call('browser_evaluate', { function: script })).toMatch(/^error: The (?:page|browser) /)
      expect(await call('browser_navigate', hostilePage)).toContain('Page Title: Large')
      expect(await files('echo here')).toContain('here')
    })
  })

  test('that downloads a gigabyte fills the disk of its lease, and its browser goes on', { timeout }, async () => {
    await withHostileDesk('download', '<title>Store</title><a href="/download">Get</a>', async ({ call, files }) => {
      await call('browser_navigate', hostilePage)
      await call('browser_click', { target: 'a' })
      await call('browser_wait_for', { time: 20 })
      expect(await call('browser_navigate', hostilePage)).toContain('Page Title: Store')
      const [kilobytes] = /^\d+/m.exec(await files('du -sxk /workspace /tmp 2>/dev/null | sort -n | tail -1')) ?? []
      expect(Number(kilobytes)).toBeLessThan(300_000)
    })
  })

  test('of great height has a picture in its file, and beside its answer if it is small', { timeout }, async () => {
    const page = `<title>High</title><canvas width="1200" height="1400"></canvas><script>
      const context = document.querySelector('canvas').getContext('2d'), image = context.createImageData(1200, 1400)
      for (let index = 0; index < image.data.length; index++) image.data[index] = index % 4 === 3 ? 255 : Math.random() * 256
      context.putImageData(image, 0, 0)</script>`
    await withHostileDesk('picture', page, async ({ call, client, files }) => {
      await call('browser_navigate', hostilePage)
      const { content } = await client.callTool({ name: 'browser-server__browser_take_screenshot', arguments: { fullPage: true } })
      expect(content).toEqual([{ type: 'text', text: expect.stringMatching(/page-1\.png[\s\S]*The picture is in its file alone/) }])
      expect(await files('wc -c < .playwright-mcp/page-1.png')).toMatch(/^\d{7}/)
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
