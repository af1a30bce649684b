import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createHttpRuns } from './http-client.ts'
import { openDashboard } from './open-dashboard.ts'
import { writeRun } from './testing/write-run.ts'

/** Sends one request as it is written, because `fetch` would correct its path and its headers. */
async function ask(
  url: URL,
  path: string,
  headers: Record<string, string> = {},
  method = 'GET',
): Promise<{ status: number; body: string; headers: NodeJS.Dict<string | string[]> }> {
  const sent = request({ host: url.hostname, port: url.port, path, method, headers })
  sent.end()
  const [response] = (await once(sent, 'response')) as [import('node:http').IncomingMessage]
  let body = ''
  for await (const chunk of response) body += chunk
  return { status: response.statusCode!, body, headers: response.headers }
}

it('answers its own page with the token, and nobody else', async () => {
  await using run = await writeRun()
  const dashboard = await openDashboard({ runs: [run.path] })
  try {
    const url = new URL(dashboard.url)
    const authorization = `Bearer ${url.searchParams.get('token')}`
    const api = `/api/runs/${run.id}/summary`
    const status = async (...args: [path: string, headers?: Record<string, string>, method?: string]) => (await ask(url, ...args)).status
    expect(await status(api, { authorization })).toBe(200)
    expect(await status(api, { authorization, origin: url.origin })).toBe(200)
    expect(await status(api)).toBe(401)
    expect(await status(`${api}?token=${url.searchParams.get('token')}`)).toBe(401)
    expect(await status(api, { authorization: 'Bearer wrong' })).toBe(401)
    expect(await status(api, { authorization, origin: 'https://elsewhere.example' })).toBe(403)
    expect(await status(api, { authorization, origin: 'null' })).toBe(403)
    expect(await status(api, { authorization, host: 'elsewhere.example' })).toBe(421)
    expect(await status(api, { authorization }, 'POST')).toBe(405)
    expect(await status(api, { authorization }, 'DELETE')).toBe(405)
    for (const name of ['..', '../..', '%2e%2e', '..%2f..%2fetc', `${run.id}%2f..`, '%00', '%ff']) {
      expect([name, await status(`/api/runs/${name}/summary`, { authorization })]).toEqual([name, 404])
      expect([name, await status(`/assets/${name}/package.json`)]).toEqual([name, 404])
    }
    const page = await ask(url, '/')
    expect(page.status).toBe(200)
    expect(page.headers['content-security-policy']).toMatch(/^default-src 'none'; script-src 'self';/)
    expect(page.headers['content-security-policy']).not.toMatch(/unsafe|\*|https?:/)
    expect(page.headers['x-content-type-options']).toBe('nosniff')
  } finally {
    await dashboard.close()
  }
})

it('ends with a browser that never reads its events', async () => {
  await using run = await writeRun()
  const dashboard = await openDashboard({ runs: [run.path] })
  const url = new URL(dashboard.url)
  const socket = connect(Number(url.port), url.hostname)
  socket.on('error', () => {})
  socket.pause()
  socket.write(
    `GET /api/runs/${run.id}/events HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${url.searchParams.get('token')}\r\n\r\n`,
  )
  await once(socket, 'connect')
  await dashboard.close()
  socket.destroy()
})

it('keeps little in memory for browsers that never read, while another reads everything', async () => {
  await using run = await writeRun()
  const events = 100_000
  const line = (step: number) => `${JSON.stringify({ type: 'checkpoint-saved', at: 1, step, path: 'x'.repeat(1_000), best: false })}\n`
  await writeFile(join(run.path, 'events.jsonl'), Array.from({ length: events }, (_, step) => line(step)).join(''))
  const dashboard = await openDashboard({ runs: [run.path] })
  const url = new URL(dashboard.url)
  const token = url.searchParams.get('token')!
  const silent = Array.from({ length: 5 }, () => {
    const socket = connect(Number(url.port), url.hostname)
    socket.on('error', () => {})
    socket.pause()
    socket.write(`GET /api/runs/${run.id}/events HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\n\r\n`)
    return socket
  })
  const used = () => {
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  }
  const before = used()
  let greatest = 0
  let read = 0
  const ending = new AbortController()
  for await (const { event } of createHttpRuns(url.origin, token).run(run.id).follow(0, ending.signal)) {
    read += 1
    if (read % 1_000 === 0) greatest = Math.max(greatest, used() - before)
    if (event.type === 'checkpoint-saved' && event.step === events - 1) ending.abort()
  }
  expect(read).toBe(events)
  // The whole log for each of them would be five times a hundred megabytes.
  expect(greatest).toBeLessThan(250_000_000)
  for (const socket of silent) socket.destroy()
  await dashboard.close()
})

it('a follower whose connection is lost goes on where it was', async () => {
  await using run = await writeRun({ isLive: true })
  const dashboard = await openDashboard({ runs: [run.path] })
  const url = new URL(dashboard.url)
  const sockets = new Set<Socket>()
  const proxy = createServer((client) => {
    const server = connect(Number(url.port), url.hostname)
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(from)
      from.pipe(to)
      from.on('error', () => {}).on('close', () => to.destroy())
    }
  }).listen(0, url.hostname)
  await once(proxy, 'listening')
  const isThere: boolean[] = []
  const { port } = proxy.address() as AddressInfo
  const runs = createHttpRuns(`http://${url.hostname}:${port}`, url.searchParams.get('token')!, (each) => isThere.push(each))
  const ending = new AbortController()
  const { eventsEnd } = await runs.run(run.id).summary()
  const begin = (step: number) => run.store.appendEvent({ type: 'step-start', at: 1, step, steps: 30 })
  const seen: number[] = []
  begin(10)
  for await (const { event } of runs.run(run.id).follow(eventsEnd, ending.signal)) {
    // The last events of the run itself may reach the log after its summary was read.
    if (event.type !== 'step-start' || event.step < 10) continue
    seen.push(event.step)
    if (event.step === 13 || event.step === 16) for (const socket of sockets) socket.destroy()
    if (event.step === 19) ending.abort()
    else begin(event.step + 1)
  }
  expect(seen).toEqual([10, 11, 12, 13, 14, 15, 16, 17, 18, 19])
  expect(isThere).toEqual([true, false, true, false, true])
  proxy.close()
  await dashboard.close()
})
