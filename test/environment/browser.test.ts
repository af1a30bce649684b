// @module-tag quick
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openOutward } from '@aworld-train/http'
import { modelServices, modelSettings } from '@aworld-train/tools'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { ChatRequest } from '../../packages/tools/src/testing/model-context.ts'
import { html, json, openStandIn, type StandIn } from '../../packages/tools/src/testing/stand-in.ts'
import { type Desks, openDesks, timeout } from './browser-desk.ts'
import { commandsBelowUs } from './processes.ts'

let desks: Desks
let model: StandIn
let outward: Awaited<ReturnType<typeof openOutward>>
/** What the model of browser_use answers to a request. */
let answers: (request: ChatRequest) => object
beforeAll(async () => {
  model = await openStandIn(({ body }) => json({ choices: [{ message: answers(JSON.parse(body) as ChatRequest), finish_reason: 'stop' }] }))
  const settings = new Map([
    ['BROWSERUSE_LLM_BASE_URL', `${model.url}/v1`],
    ['BROWSERUSE_LLM_MODEL_NAME', 'a-model'],
  ])
  outward = await openOutward({ services: modelServices(settings) })
  desks = await openDesks({ outward, models: { browseruse: modelSettings(settings, 'browseruse')! } })
})
afterAll(async () => {
  await desks.close()
  await outward.close()
  await model.close()
})

/** A site of the web whose pages differ at each visit. It ends the connection of its own accord. */
async function openSite() {
  let visits = 0
  const site = await openStandIn(({ url, method }) => {
    visits++
    if (method === 'POST') return html(`<title>Order</title><h1>Order ${visits}</h1>`)
    if (url.pathname === '/data') return json({ visits })
    const script = `fetch('/data').then((answer) => answer.json()).then(({ visits }) => { document.querySelector('p').textContent = 'Data ' + visits })`
    return html(
      `<title>Shop</title><h1>Visit ${visits}</h1><p>Wait</p><form method="post"><button>Buy</button></form><script>${script}</script>`,
    )
  })
  return { site, visits: () => visits }
}

const home = { url: 'http://127.0.0.1:8000/' }

test('a model does a task in the browser, step by step, and no more steps than it may', { timeout }, async () => {
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
  await desks.with('task', { 'index.html': '<h1>Twelve figs</h1>' }, async ({ call }) => {
    const task = 'How many figs does http://127.0.0.1:8000/ have?'
    expect(await call('browser_use', { task })).toBe('Twelve figs')
    expect(await call('browser_use', { task, max_steps: 2 })).toMatch(/^error: The model did not finish the task within 2 steps/)
  })
})

test('pages of the web come through the recording, and again with the network cut, byte for byte', { timeout }, async () => {
  const directory = await mkdtemp(join(tmpdir(), 'browser-'))
  const { site, visits } = await openSite()
  const browse = async (mode: 'record' | 'replay') => {
    const web = { mirrors: { 'https://shop.test': site.url } }
    const outward = await openOutward({ services: [], web, cassette: { path: join(directory, 'world.jsonl'), mode } })
    const recorded = await openDesks({ outward })
    const answers: string[] = []
    await recorded.with('shopper', {}, async ({ call }) => {
      for (const [tool, input] of [
        ['browser_navigate', { url: 'https://shop.test/' }],
        ['browser_wait_for', { text: 'Data' }],
        ['browser_snapshot', {}],
        ['browser_click', { target: 'button' }],
        ['browser_snapshot', {}],
        ['browser_network_requests', { static: true }],
      ] as const)
        answers.push(await call(tool, input))
      if (mode === 'record')
        for (const address of [
          'http://10.0.0.1/',
          'http://169.254.169.254/',
          `http://127.0.0.1:${new URL(site.url).port}/`,
          'http://none.test/',
        ])
          expect(await call('browser_navigate', { url: address })).toMatch(/HTTP status: (?:403|502)|net::ERR_/)
    })
    await recorded.close()
    await outward.close()
    return answers
  }
  const first = await browse('record')
  expect(first.join('\n')).toMatch(/Visit 1[\s\S]*Data 2[\s\S]*Order 3/)
  expect(visits()).toBe(3)
  await site.close()
  expect(await browse('replay')).toEqual(first)
  await rm(directory, { recursive: true })
})

test('a command plants nothing that the browser beside it would run', { timeout }, async () => {
  await desks.with('planter', { 'index.html': '<h1>Figs</h1>' }, async ({ call, run }) => {
    const code = `require('fs').writeFileSync('/workspace/planted', require('fs').readdirSync('/dev/shm').join())`
    for (const folder of ['/tmp', '/workspace', '$HOME', '/dev/shm'])
      await run(`mkdir -p ${folder}/.node_modules/bufferutil && echo "${code}" > ${folder}/.node_modules/bufferutil/index.js`)
    expect(await call('browser_navigate', home)).toContain('127.0.0.1:8000')
    expect(await run('cat planted; ls /dev/shm')).not.toMatch(/browser|profile|config/i)
    expect(await run('ls planted')).toContain('No such file')
  })
})

test('two leases browse at once, each with its own pages', { timeout }, async () => {
  const fruits = ['fig', 'plum']
  const snapshots = await Promise.all(
    fruits.map(async (fruit) => {
      let snapshot = ''
      await desks.with(fruit, { 'index.html': `<title>${fruit}</title><h1>One ${fruit}</h1>` }, async ({ call }) => {
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
    await desks.with(rollout, pages, async ({ call, client, run }) => {
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
        await run('ls -A . .playwright-mcp; file=.playwright-mcp/page-1.yml; cat $file; head -c 4 shop.png | tail -c 3'),
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

test('what is no page of the web is not opened, by no tool and no page', { timeout }, async () => {
  const pages = { 'index.html': '<title>Gate</title><a href="file:///etc/passwd">in</a>' }
  await desks.with('gate', pages, async ({ call, client }) => {
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

test('a browser that is killed ends its call, and the next call has another one', { timeout }, async () => {
  await desks.with('killed', { 'index.html': '<title>Here</title>' }, async ({ call }) => {
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
