import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { errorMessage, orAborted, TrainError, toTrainError } from '@aworld-train/core'
import { discardBody, type HttpLimits, isLoopback, openHttpServer, requestUrl, type TlsIdentity } from '@aworld-train/http'
import { type AuthInfo, OAuthError } from '@modelcontextprotocol/server'
import { createWebSocketStream, type WebSocket, WebSocketServer } from 'ws'
import { controlScope, invalidToken, leasesScope, type Tokens, watchScope } from '../access/tokens.ts'
import { sendError, sendJson } from '../http-answer.ts'
import type { Lease } from '../leases/lease.ts'
import type { LeaseTable } from '../leases/lease-table.ts'
import { readPageFile } from './page-files.ts'

export interface DesktopViewerOptions {
  readonly host: string
  /** 0 takes any free port. */
  readonly port: number
  /** Host of the page's address, where it is another than that on which it listens, as for a container. */
  readonly publicHost: string | undefined
  readonly tls: TlsIdentity | undefined
  readonly insecure: boolean | undefined
  /** Names besides those of loopback that requests may have in `Host`, and pages in `Origin`. */
  readonly allowedHosts: readonly string[]
  readonly tokens: Tokens
  readonly leases: LeaseTable
}

export interface DesktopViewer {
  /** Page that shows the desktop of a lease. */
  pageOf(lease: string): string
  close(): Promise<void>
}

/** Most people who watch one desktop. Each takes time of its X server. */
const maxWatchers = 16
const limits: HttpLimits = {
  maxSockets: 512,
  maxHeaderBytes: 16 * 1024,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 10_000,
  keepAliveTimeoutMs: 30_000,
}
/** Longest message of a browser. Keys and movements are short; a clipboard may be longer. */
const maxMessageBytes = 256 * 1024
/** Close codes of a WebSocket (RFC 6455, 7.4.1). */
const closeCodes = { normal: 1000, policy: 1008, failed: 1011 }
/** Most characters of the reason of a close, which may take 123 bytes. */
const longestReason = 120
/** Longest time of a timer of Node's. */
const longestTimerMs = 2 ** 31 - 1

const guards = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
}

/** A watcher of a desktop. */
interface Watcher {
  readonly lease: Lease
  readonly mayControl: boolean
  /** End of the token in Unix milliseconds; `null` without one. */
  readonly expiresAt: number | null
}

/**
 * Serves the page `/vnc.html`, which shows the desktop of a lease: the one of `lease=`, of the rollout in `rollout=`, or the newest.
 * `token=` has to have the scope `desktop`, of this lease or of all; on loopback nobody needs one to watch, unless the server is public.
 * Rejects with CONFIG_INVALID, and with GATEWAY_PORT_IN_USE.
 */
export async function openDesktopViewer(options: DesktopViewerOptions): Promise<DesktopViewer> {
  const { host, publicHost, tokens, leases } = options
  const allowedHosts = publicHost === undefined ? options.allowedHosts : [...options.allowedHosts, publicHost]
  // Requests that a reverse proxy of this machine passes on come over loopback too.
  const isLocal = isLoopback(host) && (publicHost === undefined || isLoopback(publicHost))
  const watchers = new Map<Lease, number>()
  const sockets = new WebSocketServer({ noServer: true, maxPayload: maxMessageBytes, perMessageDeflate: false })

  /** Throws for a request of a foreign page, and for a token that opens nothing. Resolves to `null` for a person who needs none. */
  async function authorize(request: IncomingMessage, query: URLSearchParams): Promise<AuthInfo | null> {
    const { origin, host: name = '' } = request.headers
    if (origin !== undefined && !isOwnOrigin(origin, name, allowedHosts))
      throw new TrainError('HOST_REFUSED', 'Another page may not watch the desktop; open /vnc.html itself.')
    const token = query.get('token')
    if (token === null && isLocal && isLoopback(name.replace(/:\d+$/, ''))) return null
    const auth = await tokens.verifyAccessToken(token ?? '')
    if (!auth.scopes.includes(watchScope)) throw invalidToken()
    return auth
  }

  function find(query: URLSearchParams, auth: AuthInfo | null): Lease {
    const own = auth && !auth.scopes.includes(leasesScope) ? String(auth.extra?.['lease']) : null
    const [id, rollout] = [query.get('lease') ?? own, query.get('rollout')]
    if (own !== null && id !== own) throw invalidToken()
    const found = leases
      .list()
      .filter((lease) => lease.hasDesktop && (id === null || lease.id === id))
      // Environments put the name of their run before that of the rollout.
      .findLast((lease) => rollout === null || lease.rollout === rollout || lease.rollout.endsWith(`.${rollout}`))
    if (found) return found
    const message = id === null && rollout === null ? 'No lease with a desktop is open.' : 'That lease is closed, or it has no desktop.'
    throw new TrainError('LEASE_UNKNOWN', message)
  }

  async function admit(request: IncomingMessage): Promise<Watcher> {
    const { searchParams } = requestUrl(request)
    const auth = await authorize(request, searchParams)
    const lease = find(searchParams, auth)
    if ((watchers.get(lease) ?? 0) >= maxWatchers)
      throw new TrainError('LEASE_LIMIT', `${maxWatchers} watch this desktop already; close one of their pages.`)
    return {
      lease,
      mayControl: auth?.scopes.includes(controlScope) ?? false,
      expiresAt: auth?.expiresAt === undefined ? null : auth.expiresAt * 1_000,
    }
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = requestUrl(request)
    for (const [name, value] of Object.entries(guards)) response.setHeader(name, value)
    if (request.method !== 'GET' && request.method !== 'HEAD')
      throw new TrainError('LEASE_INVALID', 'The page of desktops only reads.', { details: { status: 405, allow: 'GET, HEAD' } })
    if (pathname === '/health') return sendJson(response, 200, { status: 'ok' })
    if (pathname === '/desktop') {
      const { lease, mayControl } = await admit(request)
      const { passwords } = (await lease.desktop())!
      const { id, rollout, attempt, task } = lease
      return sendJson(response, 200, { id, rollout, attempt, task, mayControl, password: passwords[mayControl ? 'control' : 'watch'] })
    }
    const file = readPageFile(pathname)
    if (!file) throw new TrainError('LEASE_UNKNOWN', 'Served are /vnc.html, /desktop and /health.')
    // The page itself says what is wrong with the token, and takes another one.
    const problem =
      pathname === '/vnc.html'
        ? await authorize(request, searchParams).then(
            () => null,
            (cause: unknown) => cause,
          )
        : null
    if (problem && !(problem instanceof OAuthError)) throw problem
    response.writeHead(problem ? 401 : 200, { 'content-type': file.type, 'content-length': file.bytes.length })
    response.end(request.method === 'HEAD' ? undefined : file.bytes)
  }

  /** Joins a watcher to the desktop until either leaves, the lease ends or the token expires. */
  async function connect(socket: WebSocket, { lease, expiresAt }: Watcher): Promise<void> {
    watchers.set(lease, (watchers.get(lease) ?? 0) + 1)
    const close = (code: number, reason: string) => socket.close(code, reason.slice(0, longestReason))
    const end = new AbortController()
    const expire = () => {
      close(closeCodes.policy, 'The token has expired.')
      end.abort(new Error('The token has expired.'))
    }
    const timer = setTimeout(expire, expiresAt === null ? longestTimerMs : Math.min(expiresAt - Date.now(), longestTimerMs))
    socket.once('close', () => {
      clearTimeout(timer)
      end.abort(new Error('The watcher left.'))
    })
    const stream = createWebSocketStream(socket)
    // A message beyond the limit is not read to its end.
    stream.on('error', () => socket.terminate())
    try {
      const desktop = await orAborted(lease.desktop(), end.signal)
      const connection = await desktop!.connect(AbortSignal.any([lease.signal, end.signal]))
      connection.on('error', () => {})
      const closed = new Promise((resolve) => connection.once('close', resolve))
      // The end may have come with the connection.
      if (end.signal.aborted) connection.destroy()
      end.signal.addEventListener('abort', () => connection.destroy())
      stream.pipe(connection)
      connection.pipe(stream, { end: false })
      await closed
      close(closeCodes.normal, lease.ended?.message ?? 'The desktop closed the connection.')
    } catch (error) {
      close(closeCodes.failed, lease.ended?.message ?? errorMessage(error))
    } finally {
      // Until the browser's own close is read, its connection stays.
      stream.resume()
      clearTimeout(timer)
      const others = watchers.get(lease)! - 1
      if (others > 0) watchers.set(lease, others)
      else watchers.delete(lease)
    }
  }

  const listening = await openHttpServer({
    ...options,
    allowedHosts,
    what: 'The page of desktops',
    limits,
    portError: 'GATEWAY_PORT_IN_USE',
    handle(request, response) {
      discardBody(request)
      answer(request, response).catch((error: unknown) => refuse(response, error))
    },
    upgrade(request, socket, head) {
      socket.on('error', () => socket.destroy())
      admit(request).then(
        (watcher) => sockets.handleUpgrade(request, socket, head, (each) => void connect(each, watcher)),
        (error: unknown) => {
          const response = new ServerResponse(request)
          response.shouldKeepAlive = false
          response.assignSocket(socket as Socket)
          response.once('finish', () => socket.end())
          refuse(response, error)
        },
      )
    },
  })
  return {
    pageOf(lease) {
      const page = new URL('/vnc.html', listening.url)
      if (publicHost !== undefined) page.hostname = publicHost
      page.search = String(new URLSearchParams({ autoconnect: 'true', lease }))
      return page.href
    },
    async close() {
      const closed = listening.close()
      for (const socket of sockets.clients) socket.close(closeCodes.normal, 'The environment server was stopped.')
      listening.server.closeAllConnections()
      for (const socket of sockets.clients) socket.terminate()
      await closed
    },
  }
}

function isOwnOrigin(origin: string, host: string, allowedHosts: readonly string[]): boolean {
  if (!URL.canParse(origin)) return false
  const url = new URL(origin)
  return url.host === host || allowedHosts.includes(url.hostname)
}

function refuse(response: ServerResponse, cause: unknown): void {
  if (cause instanceof OAuthError)
    sendJson(response, 401, { error: { code: cause.code, message: cause.message } }, { 'www-authenticate': 'Bearer' })
  else sendError(response, toTrainError(cause, 'ENVIRONMENT_START_FAILED'))
}
