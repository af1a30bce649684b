import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { desktopFrameKey, LeaseAnswer, type Sandbox, ToolImage, type Workspace } from '@aworld-train/core'
import { createEnvironment } from '@aworld-train/environment'
import { defineTool, type EnvironmentServerOptions, type ToolServer, toolServers } from '@aworld-train/tools'
import { openSandbox } from '@aworld-train/tools/sandbox'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { z } from 'zod'
import { readSigningKey } from '../../packages/tools/src/access/signing-key.ts'
import { createTokens } from '../../packages/tools/src/access/tokens.ts'
import { openDesktop } from '../../packages/tools/src/desktop/open-desktop.ts'
import { answerChallenge } from '../../packages/tools/src/desktop/vnc-password.ts'
import { browserFolders } from '../../packages/tools/src/servers/browser/browser-folders.ts'
import {
  callTool,
  connectClient,
  leaseOpen,
  openLease,
  openTestServer,
  request,
  type TestServer,
} from '../../packages/tools/src/testing/open-test-server.ts'
import { openBrowser } from '../dashboard/browser.ts'
import { pictures } from '../dashboard/check-page.ts'
import { untilServed } from './browser-desk.ts'

/** Chromium in the lease, with a page in one colour that each key turns into another. */
const screen: ToolServer = {
  name: 'screen-server',
  scope: 'terminal',
  description: 'Shows colours.',
  needs: [],
  tools: [
    defineTool({
      name: 'show',
      description: 'Shows a colour.',
      input: z.object({ color: z.string() }),
      output: z.object({}),
      async call({ color }, { workspace, desktop, signal }) {
        const { display } = (await desktop())!
        const page = `<body style="background:${color}" onkeydown="document.body.style.background='black'">`
        const options = ['--user-data-dir=/tmp/chromium', '--no-first-run', '--disable-dev-shm-usage', '--disable-gpu', '--kiosk']
        await workspace.program(
          {
            command: ['/usr/lib/chromium/chromium', ...options, `data:text/html,${encodeURIComponent(page)}`],
            profile: 'graphical',
            env: { DISPLAY: display, HOME: '/tmp' },
          },
          new AbortController().signal,
        )
        signal.throwIfAborted()
        return {}
      },
      toText: () => 'shown',
    }),
    defineTool({
      name: 'idle',
      description: 'Does nothing.',
      input: z.object({}),
      output: z.object({}),
      call: async () => ({}),
      toText: () => 'done',
    }),
  ],
}

const folder = mkdtempSync(join(tmpdir(), 'desktop-'))
const keyFile = join(folder, 'key.pem')
let sandbox: Sandbox
let server: TestServer
let page: Page
const closing: (() => Promise<unknown>)[] = [async () => rmSync(folder, { recursive: true })]

async function serve(options: Partial<EnvironmentServerOptions> = {}): Promise<TestServer> {
  return await openTestServer({ sandbox, servers: [screen, ...toolServers], desktopPort: 0, keyFile, ...options })
}

beforeAll(async () => {
  sandbox = await openSandbox({ tier: 'bubblewrap', readable: browserFolders() })
  server = await serve()
  const browser = await openBrowser()
  closing.push(sandbox.close, server.close, () => browser.close())
  page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage()
})
afterAll(async () => {
  for (const close of closing.reverse()) await close()
})

async function open(rollout: string, on = server) {
  const lease = await openLease(on, { rollout, desktop: true })
  const client = await connectClient(on.url, { token: lease.token })
  onTestFinished(() => client.close())
  const address = (path: string, query: Record<string, string>) => {
    const url = new URL(path, lease.desktopUrl)
    url.search = String(new URLSearchParams(query))
    return url.href
  }
  const close = () => request(on, 'DELETE', `/v1/leases/${lease.id}`)
  return { ...lease, client, address, close }
}
type Opened = Awaited<ReturnType<typeof open>>

async function show(lease: Opened, color: string): Promise<void> {
  expect(await callTool(lease.client, 'screen-server__show', { color })).toBe('shown')
}

/** The colour of the desktop that a page shows, away from the pointer in the middle. */
const colorOf = (watching: Page) =>
  watching.evaluate(
    "(() => { const c = document.querySelector('canvas'); return c ? [...c.getContext('2d').getImageData(c.width >> 2, c.height >> 2, 1, 1).data].join() : '' })()",
  )
const lime = '0,255,0,255'
const blue = '0,0,255,255'
const black = '0,0,0,255'
const patience = { timeout: 60_000, interval: 200 }

/** A viewer that speaks the protocol itself, up to its first messages. */
async function connectViewer(address: string, password?: string) {
  const socket = new WebSocket(address.replace('http', 'ws'))
  const closed = once(socket, 'close').then(([, reason]) => String(reason))
  const chunks: Buffer[] = []
  socket.on('message', (data: Buffer) => chunks.push(data))
  const received = () => Buffer.concat(chunks)
  const receive = (bytes: number) => expect.poll(() => received().length, patience).toBeGreaterThanOrEqual(bytes)
  await receive(12)
  if (password !== undefined) {
    socket.send(Buffer.from('RFB 003.008\n'))
    await receive(12 + 2)
    socket.send(Buffer.from([2]))
    await receive(12 + 2 + 16)
    socket.send(answerChallenge(password, received().subarray(14, 30)))
    await receive(12 + 2 + 16 + 4)
    expect(received().readUInt32BE(30)).toBe(0)
    socket.send(Buffer.from([1]))
    await receive(12 + 2 + 16 + 4 + 24)
  }
  onTestFinished(() => socket.terminate())
  return { socket, closed }
}

/** Presses and releases the key "a". */
const keyPress = Buffer.from([4, 1, 0, 0, 0, 0, 0, 0x61, 4, 0, 0, 0, 0, 0, 0, 0x61])

async function get(address: string, headers: Record<string, string> = {}) {
  const asking = httpRequest(address, { headers: { connection: 'close', ...headers } }).end()
  const [response] = (await Promise.race([once(asking, 'response'), once(asking, 'upgrade')])) as [IncomingMessage]
  let text = ''
  if (response.statusCode !== 101) for await (const chunk of response) text += chunk
  asking.destroy()
  return { status: response.statusCode, text }
}
const upgrade = {
  connection: 'upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
}

const mint = (id: string, scopes: readonly string[], lifetimeMs = 600_000) =>
  createTokens(readSigningKey(keyFile), server.url).mint({ subject: 'someone', id, scopes, lifetimeMs })

test('the page shows the desktop of the lease, of the rollout, or of the newest lease, to two people at once', async () => {
  const [first, second] = [await open('run.first'), await open('run.second')]
  await Promise.all([show(first, 'lime'), show(second, 'blue')])
  await page.goto(first.desktopUrl!)
  await expect.poll(() => colorOf(page), patience).toBe(lime)
  expect(await page.innerText('#status')).toBe('run.first, attempt 2, task t1 · you watch')
  if (pictures) await page.screenshot({ path: join(pictures, 'desktop.png') })
  await page.goto(second.address('/vnc.html', { autoconnect: 'true' }))
  await expect.poll(() => colorOf(page), patience).toBe(blue)
  const other = await page.context().newPage()
  await other.goto(first.address('/vnc.html', { autoconnect: 'true', rollout: 'first' }))
  await expect.poll(() => colorOf(other), patience).toBe(lime)
  const third = await page.context().newPage()
  await third.goto(first.desktopUrl!)
  await expect.poll(() => colorOf(third), patience).toBe(lime)
  await first.close()
  await expect.poll(() => third.innerText('#status'), patience).toBe('The lease was closed.')
  expect(await colorOf(page)).toBe(blue)
  await Promise.all([other.close(), third.close(), second.close()])
  await expect.poll(() => page.innerText('#status'), patience).toBe('No lease with a desktop is open. This page shows the next one.')
})

test('keys move nothing for who may watch, however many, and do for who may control', async () => {
  const lease = await open('keys')
  await show(lease, 'lime')
  const { password } = JSON.parse((await get(lease.address('/desktop', { lease: lease.id }))).text)
  await page.goto(lease.desktopUrl!)
  await expect.poll(() => colorOf(page), patience).toBe(lime)
  const { socket } = await connectViewer(lease.address('/desktop', { lease: lease.id }), password)
  for (let count = 0; count < 10_000; count++) socket.send(keyPress)
  await page.click('canvas')
  await page.keyboard.press('a')
  await expect.poll(() => socket.bufferedAmount, patience).toBe(0)
  await sleep(1_000)
  expect(await colorOf(page)).toBe(lime)
  const token = await mint(lease.id, ['desktop', 'desktop-control'])
  await page.goto(lease.address('/vnc.html', { autoconnect: 'true', token }))
  await expect.poll(() => page.innerText('#status'), patience).toContain('you have keyboard and mouse')
  expect(page.url()).not.toContain('token')
  await page.click('canvas')
  await page.keyboard.press('a')
  await expect.poll(() => colorOf(page), patience).toBe(black)
  await lease.close()
})

test('a frame follows a call that changed the screen, out of sight of the model', async () => {
  const lease = await open('frames')
  const idle = async () => {
    const { content, _meta } = await lease.client.callTool({ name: 'screen-server__idle', arguments: {} })
    expect(content).toEqual([{ type: 'text', text: 'done' }])
    return ToolImage.optional().parse(_meta?.[desktopFrameKey])
  }
  const frame = await idle()
  expect(frame).toMatchObject({ mimeType: 'image/png', shows: 'desktop' })
  await page.setContent(`<img src="data:image/png;base64,${frame!.data}">`)
  expect(
    await page.evaluate('document.images[0].decode().then(() => [document.images[0].naturalWidth, document.images[0].naturalHeight])'),
  ).toEqual([1280, 800])
  // The window manager draws, too.
  await expect.poll(idle, patience).toBeUndefined()
  await show(lease, 'blue')
  await expect.poll(idle, patience).toBeDefined()
  await lease.close()
})

test('the browser of a lease with a desktop shows its page there', async () => {
  const lease = await open('browser')
  await request(
    server,
    'PUT',
    `/v1/leases/${lease.id}/files/index.html`,
    Buffer.from('<title>A page</title><body style="background:blue">'),
  )
  const command = `python3 -m http.server 8000 --bind 127.0.0.1 >/dev/null 2>&1 & ${untilServed(8000)}`
  await callTool(lease.client, 'terminal-server__execute_command', { command })
  const answer = await callTool(lease.client, 'browser-server__browser_navigate', { url: 'http://127.0.0.1:8000/' })
  expect(answer).toContain('Page Title: A page')
  await page.goto(lease.desktopUrl!)
  await expect.poll(() => colorOf(page), patience).toBe(blue)
  if (pictures) await page.screenshot({ path: join(pictures, 'browser.png') })
  await lease.close()
})

test('an agent that asks for a desktop gets the pictures of its calls, and none from a server without leases', async () => {
  const open = (url: string) => {
    const environment = createEnvironment()
    onTestFinished(() => environment.close())
    const lease = environment.lease({ rollout: 'train/1', attempt: 0, sample: 0, task: { id: 't1' } })
    const headers = { Authorization: `Bearer ${server.connectionToken}`, MCP_SERVERS: 'screen-server' }
    const mcpConfig = { mcpServers: { tools: { url, headers, desktop: true } } }
    return { environment, tools: lease.tools({ agent: 'a', mcpConfig }, new AbortController().signal) }
  }
  const { environment, tools } = open(server.url)
  const call = { name: 'screen-server__idle', arguments: {} }
  const result = await (await tools).call(call, new AbortController().signal)
  expect(result).toMatchObject({ content: 'done', images: [{ mimeType: 'image/png', shows: 'desktop' }] })
  const [{ desktopUrl } = {}] = environment.sandboxes()
  await page.goto(`${desktopUrl}&rollout=train/1`)
  await expect.poll(() => page.innerText('#status'), patience).toMatch(/^\w{8}\.train\/1, attempt 1, task t1 · you watch$/)
  const other = createServer((_request, response) => response.writeHead(404).end('no such path')).listen(0, '127.0.0.1')
  onTestFinished(() => void other.close())
  await once(other, 'listening')
  await expect(open(`http://127.0.0.1:${(other.address() as AddressInfo).port}/mcp`).tools).rejects.toMatchObject({
    code: 'ENVIRONMENT_START_FAILED',
    message: expect.stringContaining('it leases no workspace and so no desktop: status 404 no such path'),
  })
})

test.each(['page', 'socket'])('a %s needs a token of the lease beyond loopback, and no foreign one anywhere', async (what) => {
  const lease = await open(`tokens.${what}`)
  const address = (query: Record<string, string>) => lease.address('/desktop', query)
  const headers = what === 'socket' ? upgrade : {}
  const welcome = what === 'socket' ? 101 : 200
  const statusOf = async (query: Record<string, string>, more = {}) => (await get(address(query), { ...headers, ...more })).status
  expect(await statusOf({ lease: lease.id })).toBe(welcome)
  expect(await statusOf({ lease: lease.id, token: lease.token })).toBe(welcome)
  expect(await statusOf({ token: await mint('another', ['desktop']) })).toBe(404)
  expect(await statusOf({ lease: lease.id, token: await mint('another', ['desktop']) })).toBe(401)
  expect(await statusOf({ token: await mint(lease.id, ['desktop'], -60_000) })).toBe(401)
  expect(await statusOf({ token: await mint(lease.id, ['terminal']) })).toBe(401)
  expect(await statusOf({ token: 'x'.repeat(5_000) })).toBe(401)
  expect(await statusOf({ token: '' })).toBe(401)
  expect(await statusOf({ lease: 'none' })).toBe(404)
  expect(await statusOf({}, { origin: 'http://localhost:3000' })).toBe(403)
  expect(await statusOf({}, { origin: 'null' })).toBe(403)
  expect(await statusOf({}, { host: 'rebound.example.com' })).toBe(421)
  await lease.close()
})

test('beyond loopback the page refuses who has no token, and takes one', async () => {
  const wide = await serve({ host: '0.0.0.0', insecure: true })
  onTestFinished(() => wide.close())
  const lease = await open('wide', wide)
  const plain = lease.address('/vnc.html', { autoconnect: 'true' })
  expect((await get(plain)).status).toBe(401)
  expect(JSON.parse((await get(lease.address('/desktop', {}))).text)).toMatchObject({ error: { code: 'invalid_token' } })
  expect((await get(lease.address('/desktop', {}), upgrade)).status).toBe(401)
  await page.goto(plain)
  await expect.poll(() => page.innerText('#status'), patience).toBe('The token opens nothing here, or no longer.')
  await page.fill('#token', lease.token)
  await page.click('#admission button')
  await expect.poll(() => page.innerText('#status'), patience).toBe('wide, attempt 2, task t1 · you watch')
})

test('a public server asks for a token on loopback too, where a proxy may pass requests on', async () => {
  const proxied = await serve({ publicUrl: 'https://tools.example.com/mcp' })
  onTestFinished(() => proxied.close())
  const answer = await request({ ...proxied, url: proxied.localUrl }, 'POST', '/v1/leases', { ...leaseOpen, desktop: true })
  const { id, token, desktopUrl } = LeaseAnswer.parse(await answer.json())
  const page = new URL(desktopUrl!)
  expect(page.hostname).toBe('tools.example.com')
  const statusOf = async (path: string, query: Record<string, string>, headers = {}) =>
    (await get(`http://127.0.0.1:${page.port}${path}?${new URLSearchParams(query)}`, headers)).status
  expect(await statusOf('/vnc.html', {})).toBe(401)
  expect(await statusOf('/desktop', { lease: id })).toBe(401)
  expect(await statusOf('/desktop', { lease: id }, upgrade)).toBe(401)
  expect(await statusOf('/desktop', { lease: id, token }, upgrade)).toBe(101)
})

test('watchers who leave while the desktop starts take no place', async () => {
  // The page of another test would show this desktop.
  await page.goto('about:blank')
  const lease = await open('hasty')
  const address = lease.address('/desktop', { lease: lease.id })
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      const socket = new WebSocket(address.replace('http', 'ws'))
      await once(socket, 'open')
      // A message beyond the limit ends its connection at once.
      socket.send(Buffer.alloc(300_000))
      await once(socket, 'close')
    }),
  )
  for (let count = 0; count < 16; count++) await connectViewer(address)
  expect((await get(address, upgrade)).status).toBe(503)
  await lease.close()
})

test('garbage ends its own connection alone, and says so', async () => {
  const lease = await open('garbage')
  const address = lease.address('/desktop', { lease: lease.id })
  const { socket, closed } = await connectViewer(address)
  for (let count = 0; count < 1_000; count++) socket.send(Buffer.alloc(1_000, count))
  expect(await closed).toBe('The desktop closed the connection.')
  const large = await connectViewer(address)
  large.socket.send(Buffer.alloc(10_000_000))
  await large.closed
  await connectViewer(address)
  await lease.close()
})

test('no desktop without real programs, and none without those that it needs, which the error names', async () => {
  const simulated = await serve({ sandbox: await openSandbox({ tier: 'simulated' }) })
  const refused = await request(simulated, 'POST', '/v1/leases', { ...leaseOpen, desktop: true })
  expect([refused.status, ((await refused.json()) as { error: { code: string } }).error.code]).toEqual([400, 'LEASE_INVALID'])
  await simulated.close()
  const { signal } = new AbortController()
  const workspace = await sandbox.workspace({}, signal)
  const bare: Workspace = { ...workspace, program: (program, until) => workspace.program({ ...program, env: { PATH: '/nowhere' } }, until) }
  await expect(openDesktop(bare, signal)).rejects.toMatchObject({
    code: 'ENVIRONMENT_START_FAILED',
    message: expect.stringContaining('apt-get install tigervnc-standalone-server openbox'),
  })
  await workspace.close()
})

test('no command of the lease reaches the desktop', async () => {
  const { signal } = new AbortController()
  const workspace = await sandbox.workspace({}, signal)
  const { display } = await openDesktop(workspace, signal)
  const script = `ls /dev/shm; DISPLAY=${display} openbox; python3 -c 'import socket
for family, address in [(socket.AF_INET, ("127.0.0.1", 6000)), (socket.AF_INET, ("127.0.0.1", 5900))]:
  try: socket.socket(family).connect(address)
  except OSError as error: print(error.strerror)'`
  const { output } = await workspace.run({ command: ['bash', '-c', script], timeoutMs: 60_000 }, signal)
  expect(output.trim().split('\n')).toEqual([
    'Openbox-Message: Failed to open the display from the DISPLAY environment variable.',
    'Connection refused',
    'Connection refused',
  ])
  await workspace.close()
})
