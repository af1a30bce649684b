// @module-tag quick
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type OutwardCassette, openOutward } from '@aworld-train/http'
import { defineTool, type EnvironmentServer, openEnvironmentServer, type ToolServer, toolServers } from '@aworld-train/tools'
import { openParserJail, openSandbox } from '@aworld-train/tools/sandbox'
import { afterAll, afterEach, expect, test } from 'vitest'
import { z } from 'zod'
import { connectClient, leaseOpen, openLease, request } from '../../packages/tools/src/testing/open-test-server.ts'
import { unreapedBelowUs } from './processes.ts'

const directory = await mkdtemp(join(tmpdir(), 'egress-'))
afterAll(() => rm(directory, { recursive: true }))
const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  expect(unreapedBelowUs()).toEqual([])
})

/** A site with a login and a page that differs at each visit, and the number of requests that reached it. */
async function openSite() {
  const visits: string[] = []
  const site = createServer(async ({ method, url, headers: { cookie = '' } }, response) => {
    visits.push(`${method} ${url}`)
    if (url === '/login') response.writeHead(303, { location: '/account', 'set-cookie': 'session=1; Path=/' }).end()
    else if (url === '/image') response.writeHead(200, { 'content-type': 'image/png' }).end(Buffer.from([0x89, 0xff, 0, 10, 0xfe]))
    else if (url === '/account') response.end(cookie === '' ? 'nobody\n' : 'welcome\n')
    else response.end(`visit ${visits.length}\n`)
  })
  await once(site.listen(0, '127.0.0.1'), 'listening')
  closing.push(() => {
    site.closeAllConnections()
    site.close()
  })
  const mirror = `http://127.0.0.1:${(site.address() as AddressInfo).port}`
  return { visits, mirrors: { 'https://pages.test': mirror, 'http://pages.test': mirror } }
}

/** Opens the way of a browser, and tells its password, which a browser would keep to itself. */
const browserServer: ToolServer = {
  name: 'own-browser-server',
  scope: 'web',
  description: 'Browses.',
  needs: [],
  tools: [
    defineTool({
      name: 'open',
      description: 'Opens.',
      input: z.object({}),
      output: z.object({ output: z.string() }),
      async call(_, { egress }) {
        const { port, credentials } = await egress()
        return { output: `http://${credentials.username}:${credentials.password}@127.0.0.1:${port}` }
      },
      toText: ({ output }) => output,
    }),
  ],
}

async function openServer(options: { mirrors?: Record<string, string>; cassette?: OutwardCassette; mayOpenNet?: boolean }) {
  const { mirrors = {}, cassette, mayOpenNet } = options
  const outward = await openOutward({ services: [], web: { mirrors }, cassette })
  closing.push(() => outward.close())
  const sandbox = await openSandbox({ tier: 'bubblewrap' })
  closing.push(() => sandbox.close())
  const parsers = await openParserJail()
  closing.push(() => parsers.close())
  const server = await openEnvironmentServer({ sandbox, parsers, outward, mayOpenNet, servers: [...toolServers, browserServer] })
  closing.push(() => server.close())
  return server
}

let rollouts = 0
/** Calls a tool of a new lease, again and again in the same shell. */
async function connect(server: EnvironmentServer, options: { readonly net?: boolean } = {}) {
  const servers = ['terminal-server', 'own-browser-server']
  const { url, token } = await openLease(server, { rollout: `r${rollouts++}`, servers, ...options })
  const client = await connectClient(url, { token })
  closing.push(() => client.close())
  return async (command: string, tool = 'terminal-server__execute_command') => {
    const input = { command, timeout: 300, output_format: 'json' }
    const answer = await client.callTool({ name: tool, arguments: input }, { timeout: 320_000 })
    return String((answer.structuredContent as { output?: unknown } | undefined)?.output ?? JSON.stringify(answer.content)).trimEnd()
  }
}

const session = `python3 - <<'END'
import hashlib, http.cookiejar, urllib.request
opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
read = lambda path, *data: opener.open("https://pages.test" + path, *data).read()
print(read("/account"), read("/login", b"word=1"), read("/account"), read("/a"), read("/a"))
print(hashlib.sha256(read("/image")).hexdigest())
END
curl -sS https://pages.test/a; curl -sS -d x=1 https://pages.test/a
node -e 'fetch("https://pages.test/a").then((r) => r.text()).then((text) => console.log(text))'`

test('a shell reads the web through the recording, and again with the network cut, byte for byte', async () => {
  const path = join(directory, 'world.jsonl')
  const { visits, mirrors } = await openSite()
  const recording = await openServer({ mirrors, cassette: { path, mode: 'record' } })
  const first = await (await connect(recording, { net: true }))(session)
  expect(first).toMatch(/^b'nobody\\n' b'welcome\\n' b'welcome\\n' b'visit 5\\n' b'visit 6\\n'$/m)
  expect(first.match(/^visit \d+$/gm)).toHaveLength(3)
  const count = visits.length
  expect(count).toBe(10)
  expect(recording.status().net).toEqual({ requests: 10, refused: 0, webSockets: 0 })
  // Another rollout meets the same world.
  expect(await (await connect(recording, { net: true }))(session)).toBe(first)
  for (const close of closing.splice(1).reverse()) await close()
  const replaying = await openServer({ cassette: { path, mode: 'replay' } })
  const run = await connect(replaying, { net: true })
  expect(await run(session)).toBe(first)
  expect(await run('curl -sS https://pages.test/other')).toContain('The recorded world has no answer to relay GET https://pages.test/other')
  expect(visits).toHaveLength(count)
})

test('a shell without "net" reaches nothing, and one with it only the public web', async () => {
  const { visits, mirrors } = await openSite()
  const server = await openServer({ mirrors })
  const closed = await connect(server)
  const tries = 'curl -sS -m 20 https://pages.test/a; curl -sS -m 20 -x http://127.0.0.1:3128 http://pages.test/a'
  expect(await closed(tries)).toMatch(/Could not resolve host.*Failed to connect to 127\.0\.0\.1 port 3128/s)
  expect(await closed('env | grep -ic proxy; ls /tmp')).toBe('0')
  const open = await connect(server, { net: true })
  expect(
    await open(
      '(cd /tmp; python3 -m http.server 8123 >/dev/null 2>&1 &) ; sleep 1; curl -sS http://127.0.0.1:8123/ | grep -c egress-ca.pem',
    ),
  ).toBe('1')
  const address = `http://127.0.0.1:${new URL(server.url).port}/health`
  expect(await open(`curl -sS -m 20 ${address}; curl -sS --noproxy '' -x http://127.0.0.1:3128 ${address}`)).toMatch(
    /Failed to connect.*Port \d+ of 127\.0\.0\.1 cannot be read/s,
  )
  for (const host of ['127.0.0.1', '169.254.169.254', '[::1]', '2130706433', 'localhost'])
    expect(await open(`curl -sS --noproxy '' -x http://127.0.0.1:3128 'http://${host}/'`)).toContain('is not on the public web')
  expect(await open('curl -sS -m 20 https://pages.test:22/; exec 3<>/dev/tcp/127.0.0.1/3128; echo nonsense >&3; cat <&3')).toMatch(
    /CONNECT tunnel failed, response 403.*HTTP\/1\.1 400/s,
  )
  expect(visits).toEqual([])
  // A name is judged when it is looked up, all else before.
  expect(server.status().net).toMatchObject({ requests: 1, webSockets: 0 })
})

test('a browser passes by its password, and the shell beside it does not', async () => {
  const { visits, mirrors } = await openSite()
  const run = await connect(await openServer({ mirrors }))
  const address = await run('', 'own-browser-server__open')
  expect(
    await run('curl -sS -x http://127.0.0.1:3128 https://pages.test/a; curl -sS -x http://127.0.0.1:3128 http://pages.test/a'),
  ).toMatch(/CONNECT tunnel failed, response 407.*only its browser passes here/s)
  expect(await run(`curl -sS -x http://browser:${'0'.repeat(48)}@127.0.0.1:3128 http://pages.test/a`)).toContain(
    'only its browser passes here',
  )
  expect(visits).toEqual([])
  expect(await run(`curl -sSk -x ${address} https://pages.test/a`)).toBe('visit 1')
})

test('a server that its operator closed opens the web to no lease', async () => {
  const server = await openServer({ mayOpenNet: false })
  const refused = await request(server, 'POST', '/v1/leases', { ...leaseOpen, net: true })
  expect([refused.status, await refused.json()]).toMatchObject([
    400,
    { error: { code: 'LEASE_INVALID', message: expect.stringContaining('"net"') } },
  ])
})
