import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { basename, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { toTrainError } from '@aworld-train/core'
import { createBearerCheck, discardBody, openHttpServer, requestUrl } from '@aworld-train/http'
import type { EventPage } from '@aworld-train/store'
import { randomToken } from '@aworld-train/training'
import { addressOfRuns } from './address-of-runs.ts'
import { compareRuns } from './comparison.ts'
import { type FolderClient, openFolder } from './folder-client.ts'
import { listRun, runsBelow } from './list-runs.ts'
import { readPageFiles } from './page-files.ts'
import { fromSearch } from './rollout-address.ts'
import { runStatus } from './run-status.ts'

export interface DashboardOptions {
  /** Folders of runs. One is shown as the page opens; several are laid over each other. */
  readonly runs?: readonly string[] | undefined
  /** A folder that holds runs, including those that are added while the dashboard is open. */
  readonly below?: string | undefined
  /** 0, the default, takes any free port. */
  readonly port?: number | undefined
}

export interface OpenDashboard {
  /** Address of the named runs, else of the list, with the token that admits a browser. */
  readonly url: string
  close(): Promise<void>
}

/** How long closing waits for pages that read an ended run once more. */
const lastReadMs = 3_000
const limits = { maxSockets: 200, maxHeaderBytes: 16_384, headersTimeoutMs: 10_000, requestTimeoutMs: 10_000, keepAliveTimeoutMs: 30_000 }

/** Headers of every answer. A page that shows text of models must neither load from nor send to anywhere else. */
const guards = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
}

/** Serves runs to a browser on this machine, read-only, on loopback, to anyone with the token. Rejects with GATEWAY_PORT_IN_USE. */
export async function openDashboard({ runs = [], below, port = 0 }: DashboardOptions): Promise<OpenDashboard> {
  const page = readPageFiles()
  const token = randomToken()
  const isAllowed = createBearerCheck(token)
  const paths = new Map<string, string>()
  const clients = new Map<string, Promise<FolderClient>>()
  const closing = new AbortController()
  /** Connections that follow a run, with its folder. */
  const followed = new Map<ServerResponse, string>()
  /** Text of events as it is sent, written once for all who follow the run. */
  const texts = new WeakMap<EventPage['events'], string>()

  function findRuns(): void {
    const listed = new Set(paths.values())
    for (const path of [...runs, ...(below === undefined ? [] : runsBelow(below))].map((each) => resolve(each))) {
      if (listed.has(path)) continue
      listed.add(path)
      let id = basename(path)
      for (let copy = 2; paths.has(id); copy++) id = `${basename(path)}-${copy}`
      paths.set(id, path)
    }
  }

  function client(id: string): Promise<FolderClient> {
    if (!paths.has(id)) findRuns()
    const path = paths.get(id)
    if (path === undefined) throw new NotFound(`There is no run "${id.slice(0, 100)}".`)
    const opened = clients.get(id) ?? openFolder(path)
    clients.set(id, opened)
    // A run that could not be opened may be whole next time.
    opened.catch(() => clients.delete(id))
    return opened
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = requestUrl(request)
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return send(response, 405, { error: { code: 'HTTP', message: 'The dashboard only reads.' } })
    const asset = page.assets.get(pathname)
    if (asset) return sendBytes(response, asset.type, asset.bytes, 'public, max-age=31536000, immutable')
    if (!pathname.startsWith('/api/')) {
      if (pathname === '/') return sendBytes(response, 'text/html; charset=utf-8', Buffer.from(page.html), 'no-store')
      return send(response, 404, { error: { code: 'HTTP', message: 'There is nothing at this address.' } })
    }
    const { origin, host } = request.headers
    if (origin !== undefined && origin !== `http://${host}`)
      return send(response, 403, { error: { code: 'HTTP', message: 'The dashboard answers its own page alone.' } })
    if (!isAllowed(request.headers.authorization))
      return send(response, 401, {
        error: { code: 'TOKEN', message: 'This page has no token of the dashboard; open the whole address that the terminal printed.' },
      })
    if (pathname === '/api/runs') {
      findRuns()
      return send(
        response,
        200,
        [...paths].map(([id, path]) => listRun(id, path)).sort((a, b) => b.createdAt - a.createdAt),
      )
    }
    const [, id, what] = /^\/api\/runs\/([^/]+)\/([a-z]+)$/.exec(pathname) ?? []
    if (id === undefined) throw new NotFound('There is nothing at this address.')
    const run = await client(decodeName(id))
    if (what === 'summary') return send(response, 200, await run.summary())
    if (what === 'rollouts') return send(response, 200, await run.rollouts(fromSearch(searchParams)))
    if (what === 'rollout') return send(response, 200, await run.rollout(searchParams.get('key') ?? ''))
    if (what === 'evaluation') return send(response, 200, await run.evaluation())
    if (what === 'comparison') return send(response, 200, compareRuns(run, await client(searchParams.get('with') ?? '')))
    if (what === 'health') return send(response, 200, await run.health(Number(searchParams.get('after')) || 0))
    if (what === 'events') {
      followed.set(response, paths.get(decodeName(id))!)
      response.once('close', () => followed.delete(response))
      return sendEvents(run, Number(searchParams.get('after')) || 0, response)
    }
    throw new NotFound('There is nothing at this address.')
  }

  async function sendEvents(run: FolderClient, after: number, response: ServerResponse): Promise<void> {
    const ending = new AbortController()
    const signal = AbortSignal.any([closing.signal, ending.signal])
    response.once('close', () => ending.abort())
    response.writeHead(200, { ...guards, 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
    response.flushHeaders()
    for await (const events of run.followPages(after, signal)) {
      const text = texts.get(events) ?? events.map(({ id, event }) => `id: ${id}\ndata: ${JSON.stringify(event)}\n\n`).join('')
      texts.set(events, text)
      if (response.write(text) || signal.aborted) continue
      // A browser that does not read is waited for, so that nothing piles up in memory.
      await once(response, 'drain', { signal }).catch(() => {})
    }
    response.end()
  }

  const server = await openHttpServer({
    what: 'The dashboard',
    host: '127.0.0.1',
    port,
    limits,
    portError: 'GATEWAY_PORT_IN_USE',
    handle(request, response) {
      discardBody(request)
      answer(request, response).catch((error: unknown) => {
        if (response.headersSent) return void response.destroy()
        if (error instanceof NotFound) return send(response, 404, { error: { code: 'NOT_FOUND', message: error.message } })
        send(response, 500, { error: toTrainError(error, 'STORE_FAILED').toRecord() })
      })
    },
  })
  findRuns()
  const named = [...paths].filter(([, path]) => runs.some((run) => resolve(run) === path)).map(([id]) => id)
  return {
    url: `${server.url}/?token=${token}${named.length === 0 ? '' : addressOfRuns(named)}`,
    async close() {
      const reading = [...followed].flatMap(([response, path]) => (runStatus(path).status === 'running' ? [] : [once(response, 'close')]))
      await Promise.race([Promise.allSettled(reading), sleep(lastReadMs, undefined, { ref: false })])
      closing.abort()
      await server.close()
      for (const opened of clients.values()) await opened.then((each) => each.close()).catch(() => {})
    },
  }
}

class NotFound extends Error {}

function decodeName(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new NotFound('There is nothing at this address.')
  }
}

function send(response: ServerResponse, status: number, body: unknown): void {
  const bytes = Buffer.from(JSON.stringify(body))
  response.writeHead(status, { ...guards, 'content-type': 'application/json', 'cache-control': 'no-store', 'content-length': bytes.length })
  response.end(bytes)
}

function sendBytes(response: ServerResponse, type: string, bytes: Buffer, cache: string): void {
  response.writeHead(200, { ...guards, 'content-type': type, 'cache-control': cache, 'content-length': bytes.length })
  response.end(bytes)
}
