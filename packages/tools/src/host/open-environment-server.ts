import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  type EnvironmentStatus,
  type LeaseAnswer,
  type Outward,
  type ParserJail,
  type Sandbox,
  TrainError,
  toTrainError,
  type Workspace,
  type WorkspaceLimits,
} from '@aworld-train/core'
import { discardBody, type HttpLimits, openHttpServer, requestUrl, type TlsIdentity } from '@aworld-train/http'
import {
  type AuthInfo,
  bearerAuthChallengeResponse,
  localhostAllowedOrigins,
  OAuthError,
  OAuthErrorCode,
  validateOriginHeader,
  verifyBearerToken,
} from '@modelcontextprotocol/server'
import { connectionClaims } from '../access/connection-token.ts'
import { readSigningKey } from '../access/signing-key.ts'
import { createTokens, invalidToken, leasesScope, longestLeaseMs, netScope, watchScope } from '../access/tokens.ts'
import { type DesktopViewer, openDesktopViewer } from '../desktop/desktop-viewer.ts'
import type { Authority } from '../egress/authority.ts'
import { type Egress, openEgress, planEgress } from '../egress/open-egress.ts'
import { sendError, sendJson } from '../http-answer.ts'
import { type Lease, leaseOfWork } from '../leases/lease.ts'
import { createLeaseRoutes } from '../leases/lease-routes.ts'
import { createLeaseTable } from '../leases/lease-table.ts'
import { Browsers } from '../servers/browser/browsers.ts'
import { createReadyBrowsers } from '../servers/browser/ready-browsers.ts'
import type { ModelSettings } from '../settings/models.ts'
import { serverAliases, toolServers } from '../table.ts'
import { type ModelRole, type ToolServer, toolScopes } from '../tool-server.ts'
import { type Caller, createMcpEndpoint } from './mcp-endpoint.ts'
import { createOffer } from './offered-tools.ts'

export interface EnvironmentServerOptions {
  /** Defaults to loopback. */
  readonly host?: string | undefined
  /** 0 (the default) takes any free port. */
  readonly port?: number | undefined
  /** Port of the page that shows desktops, on the same host. It opens with the first lease that has one. Default 5901. */
  readonly desktopPort?: number | undefined
  readonly tls?: TlsIdentity | undefined
  /** Allows plain HTTP beyond loopback. */
  readonly insecure?: boolean | undefined
  /** Names besides those of loopback that requests may have in `Host` and pages in `Origin`. */
  readonly allowedHosts?: readonly string[] | undefined
  /**
   * Address at which clients reach the MCP endpoint, for instance behind a proxy. Tokens of leases are valid only for this address, and their
   * clients go there. Default: its own address and `/mcp`, and clients stay at the address that they know.
   */
  readonly publicUrl?: string | undefined
  /** Address that it shares with other servers of the same key. Connection tokens are valid for all of them. Default: `publicUrl`. */
  readonly sharedUrl?: string | undefined
  /** The caller closes sandbox, parsers and outward. */
  readonly sandbox: Sandbox
  readonly parsers: ParserJail
  readonly outward: Outward
  readonly models?: Readonly<Partial<Record<ModelRole, ModelSettings>>> | undefined
  /** Address of a browser elsewhere, for the DevTools protocol. Default: Chromium in the workspace of each lease that uses it. */
  readonly browserUrl?: string | undefined
  /**
   * Most browsers that wait for the next leases, once leases browse. Default 0: each starts with its lease. A lease with a desktop, with `net`
   * or with other limits than the last gets none of them.
   */
  readonly readyBrowsers?: number | undefined
  /** Servers to offer. Default: every server of the table. */
  readonly servers?: readonly ToolServer[] | undefined
  /** Limits of a workspace if its lease asks for none. */
  readonly quota?: Partial<WorkspaceLimits> | undefined
  /**
   * Most that a lease may ask for. Default: sixteen times what a jail has, which is 16 GiB of memory, 4 GiB of files, 2,048
   * processes, 960 s, 1 MiB of output.
   */
  readonly maxQuota?: Partial<WorkspaceLimits> | undefined
  /** PEM file of the key that signs tokens, created if missing. Without it every token ends with the server. */
  readonly keyFile?: string | undefined
  /** How long the connection token lives. Default: 30 days. */
  readonly connectionTtlMs?: number | undefined
  /** How long a rollout's token lives, and an idle lease. Default: 30 minutes; at most an hour. */
  readonly leaseTtlMs?: number | undefined
  /** Most open leases at once. Default 1,024. */
  readonly maxLeases?: number | undefined
  /** Whether a lease may open the web to its commands, which it does with `net`. Default: true. */
  readonly mayOpenNet?: boolean | undefined
  /** Longest time of one call. Default 600,000. */
  readonly callTimeoutMs?: number | undefined
  /** Longest MCP request, in bytes. Default: 4 MiB. */
  readonly maxBodyBytes?: number | undefined
  /** Largest file that may be put into a workspace. Default: 64 MiB. */
  readonly maxFileBytes?: number | undefined
  /** Notices for a person in the status, besides those of the sandbox. */
  readonly notices?: readonly string[] | undefined
  /** Called with errors that no tool should throw, ten of each lease, with the failures of workspaces, and with errors of their removal. */
  readonly onError?: ((error: Error) => void) | undefined
}

export interface EnvironmentServer {
  /** Address of the MCP endpoint. */
  readonly url: string
  /** Address of the MCP endpoint for programs of this machine. */
  readonly localUrl: string
  /** Token that may open leases, and call tools without one. */
  readonly connectionToken: string
  status(): EnvironmentStatus
  /**
   * Takes an uncaught error, such as one from a callback of a stream or of a timer. It is reported, and ends the lease in whose work it was
   * thrown. Use it for `uncaughtException` and `unhandledRejection` of a process that serves nothing else.
   */
  contain(error: unknown): void
  /** Frees the port, then ends every lease. Resolves when their processes and files are gone. */
  close(): Promise<void>
}

const limits: HttpLimits = {
  maxSockets: 16_384,
  maxHeaderBytes: 16 * 1024,
  headersTimeoutMs: 30_000,
  requestTimeoutMs: 300_000,
  keepAliveTimeoutMs: 75_000,
}

const defaultMaxQuota: WorkspaceLimits = {
  memoryBytes: 16 * 2 ** 30,
  diskBytes: 4 * 2 ** 30,
  processes: 2_048,
  cpuSeconds: 960,
  outputBytes: 2 ** 20,
}

const dayMs = 86_400_000
/** Longest name of a session, in characters. */
const longestSession = 1_024

/**
 * Serves tools over MCP at `/mcp`, with a workspace for each lease, and the leases at `/v1/leases`. Rejects with CONFIG_INVALID, for
 * instance for an address beyond loopback without TLS, and with GATEWAY_PORT_IN_USE.
 */
export async function openEnvironmentServer(options: EnvironmentServerOptions): Promise<EnvironmentServer> {
  const { sandbox, outward, models = {}, servers = toolServers, allowedHosts = [], leaseTtlMs = longestLeaseMs / 2 } = options
  if (!(leaseTtlMs > 0 && leaseTtlMs <= longestLeaseMs))
    throw new TrainError('CONFIG_INVALID', `leaseTtlMs is ${leaseTtlMs}; give at most 3600000, an hour, and more than 0.`)
  for (const name of ['publicUrl', 'sharedUrl'] as const) {
    const address = options[name]
    if (address !== undefined && !(URL.canParse(address) && /^https?:/.test(address)))
      throw new TrainError(
        'CONFIG_INVALID',
        `${name} is ${JSON.stringify(address)}; write the whole address, such as https://tools.example.com/mcp.`,
      )
  }
  if (options.browserUrl !== undefined && !/^(?:https?|wss?):$/.test(URL.parse(options.browserUrl)?.protocol ?? ''))
    throw new TrainError('CONFIG_INVALID', 'browserUrl is no address; write it as ws://browser.example.com:9222, or with http://.')
  const offer = createOffer(servers, serverAliases)
  const { onError = () => {}, callTimeoutMs = 600_000, maxBodyBytes = 4 * 2 ** 20, maxFileBytes = 64 * 2 ** 20 } = options
  const { quota = {}, maxLeases = 1_024 } = options
  const maxQuota = { ...defaultMaxQuota, ...options.maxQuota }
  const net = { requests: 0, refused: 0, webSockets: 0 }
  const browsers = new Browsers({ tier: sandbox.tier, remote: options.browserUrl })
  let opening: Promise<Authority> | undefined
  // Most servers never need certificates, whose library takes a while to load.
  const authority = () => (opening ??= import('../egress/authority.ts').then(({ createAuthority }) => createAuthority()))
  const egresses = new WeakMap<Workspace, Egress>()
  async function egressOf(workspace: Workspace): Promise<Egress> {
    const planned = planEgress(await authority())
    const egress = egresses.get(workspace) ?? planned
    egresses.set(workspace, egress)
    return egress
  }
  const leases = createLeaseTable({
    ...{ sandbox, quota, maxQuota, ttlMs: leaseTtlMs, maxLeases, onError },
    mayOpenNet: options.mayOpenNet ?? true,
    async openEgress(workspace, isOpen, signal) {
      const egress = await egressOf(workspace)
      await openEgress({ workspace, outward, authority: await authority(), egress, counts: net, isOpen }, signal)
      return egress
    },
    async takeReady(lease) {
      const { task, net, limits, signal } = lease
      return readyCount > 0 && task !== null && !net && mayBrowse(lease) ? await ready.take(limits, signal) : null
    },
    onOpen(lease) {
      if (mayBrowse(lease)) void prepareBrowser(lease).catch(() => {})
    },
  })
  const readyCount = options.readyBrowsers ?? 0
  const ready = createReadyBrowsers({ count: readyCount, sandbox, browsers, planEgress: egressOf })
  /** Whether a lease may need a browser soon: it may have one, and others of late did. */
  const mayBrowse = ({ servers, hasDesktop }: Lease) =>
    browsers.areCalled() && !hasDesktop && scopesOf(servers && offer.resolve(servers)).includes('browser')
  /** Starts the browser of a lease before its first call, which starts it itself if this fails. */
  async function prepareBrowser(lease: Lease): Promise<void> {
    const workspace = await lease.workspace()
    await browsers.prepare(workspace, await egressOf(workspace), lease.signal)
  }
  const world = { tier: sandbox.tier, browsers, outward, parsers: options.parsers, models, callTimeoutMs, maxCalls: 256, onError }
  const endpoint = createMcpEndpoint({ world, maxBodyBytes })
  const key = readSigningKey(options.keyFile)
  const listening = await openHttpServer({
    what: 'The environment server',
    host: options.host ?? '127.0.0.1',
    port: options.port ?? 0,
    tls: options.tls,
    insecure: options.insecure,
    allowedHosts,
    limits,
    portError: 'GATEWAY_PORT_IN_USE',
    handle: (request, response) => void answer(request, response),
  })
  const localUrl = `${listening.url}/mcp`
  const url = options.publicUrl ?? localUrl
  const tokens = createTokens(key, url, options.sharedUrl)
  const origins = [...localhostAllowedOrigins(), ...allowedHosts, new URL(url).hostname]
  const scopesOf = (names: readonly string[] | undefined): string[] => {
    const families = new Set(offer.tools(names).map(({ server }) => server.scope))
    return toolScopes.filter((scope) => families.has(scope))
  }
  let openViewer: Promise<DesktopViewer> | undefined
  let viewer: DesktopViewer | undefined
  /** Opens the page of desktops. A port that is taken may be free later. */
  async function showDesktops(): Promise<void> {
    const { host = '127.0.0.1', desktopPort: port = 5901, tls, insecure } = options
    const publicHost = options.publicUrl === undefined ? undefined : new URL(options.publicUrl).hostname
    openViewer ??= openDesktopViewer({ host, port, publicHost, tls, insecure, allowedHosts, tokens, leases })
    viewer = await openViewer.catch((cause: unknown) => {
      openViewer = undefined
      throw cause
    })
  }
  const pageOf = ({ id, hasDesktop }: Lease) => (viewer && hasDesktop ? { desktopUrl: viewer.pageOf(id) } : {})
  const connectionToken = await tokens.mint(connectionClaims(options.connectionTtlMs ?? 30 * dayMs))
  const routes = createLeaseRoutes({
    leases,
    maxFileBytes,
    checkServers: offer.resolve,
    locationOf: ({ id }) => (options.publicUrl === undefined ? `/v1/leases/${id}` : new URL(`v1/leases/${id}`, url).href),
    showDesktops,
    async toAnswer(lease): Promise<LeaseAnswer> {
      const { id, rollout, attempt, hasDesktop } = lease
      lease.use()()
      const families = scopesOf(lease.servers && offer.resolve(lease.servers))
      const scopes = [...families, ...(lease.net ? [netScope] : []), ...(hasDesktop ? [watchScope] : [])]
      const token = await tokens.mint({ subject: `${rollout}.${attempt}`, id, scopes, lifetimeMs: leaseTtlMs })
      const { tier, notices } = sandbox
      return { version: 1, id, url, token, tier, notices: [...notices], expiresAt: lease.expiresAt, ...pageOf(lease) }
    },
  })

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const path = requestUrl(request).pathname.split('/').slice(1)
      if (path[0] === 'health' && path.length === 1) return sendJson(response, 200, { status: 'ok' })
      const origin = validateOriginHeader(request.headers.origin, origins)
      if (!origin.ok) throw new TrainError('HOST_REFUSED', `${origin.message}; add its host to allowedHosts if that page may call tools.`)
      const auth = await verifyBearerToken(request.headers.authorization, { verifier: tokens })
      if (path[0] === 'mcp' && path.length === 1) return endpoint.handle(request, response, toCaller(request, auth))
      if (!auth.scopes.includes(leasesScope)) throw new ScopeError(leasesScope)
      if (path[0] === 'v1' && path[1] === 'leases') return await routes(request, response, path.slice(2))
      if (path.join('/') === 'v1/status') return sendJson(response, 200, status())
      throw new TrainError('LEASE_UNKNOWN', 'Served are /mcp, /v1/leases, /v1/status and /health.')
    } catch (error) {
      await refuse(request, response, error)
    }
  }

  /** Reads the caller of a request. Throws for an unknown lease, for unknown servers, and for servers that the token does not open. */
  function toCaller(request: IncomingMessage, auth: AuthInfo): Caller {
    const { mcp_servers: selection, session_id: session = '' } = request.headers
    if (typeof session !== 'string' || session.length > longestSession)
      throw new TrainError('LEASE_INVALID', `SESSION_ID is given twice, or is longer than ${longestSession} characters.`)
    const lease = auth.scopes.includes(leasesScope) ? undefined : leases.find(String(auth.extra?.['lease']))
    if (!lease && !auth.scopes.includes(leasesScope)) throw invalidToken()
    const selectedNames = String(selection ?? '')
      .split(',')
      .map((name) => name.trim())
      .filter(Boolean)
    const names = selectedNames.length > 0 ? selectedNames : lease?.servers
    const resolved = names && offer.resolve(names)
    const closed = scopesOf(resolved).find((scope) => !auth.scopes.includes(scope))
    if (selectedNames.length > 0 && closed !== undefined) throw new ScopeError(closed)
    const tools = offer.tools(resolved).filter(({ server }) => auth.scopes.includes(server.scope))
    return { auth, tools, session, lease: (): Lease => lease ?? leases.session(session) }
  }

  function status(): EnvironmentStatus {
    return {
      version: 1,
      url,
      tier: sandbox.tier,
      notices: [...sandbox.notices, ...(options.notices ?? [])],
      servers: servers.map(({ name, tools, needs, missing = () => [] }) => ({
        name,
        tools: tools.map((tool) => tool.name),
        missing: [
          ...missing(browsers),
          ...needs.filter(({ anyOf }) => !anyOf.some((name) => outward.hasService(name))).map(({ remedy }) => remedy),
        ],
      })),
      leases: leases.list().map((lease) => {
        const { id, rollout, attempt, task, openedAt, expiresAt, running } = lease
        return { id, rollout, attempt, task, openedAt, expiresAt, running, ...pageOf(lease) }
      }),
      calls: { ...endpoint.calls },
      net: { ...net },
    }
  }

  const reaper = setInterval(() => void leases.sweep(), Math.min(leaseTtlMs / 4, 30_000))
  reaper.unref()
  return {
    url,
    localUrl,
    connectionToken,
    status,
    contain(thrown) {
      const cause = thrown instanceof Error ? thrown : new Error(String(thrown))
      const lease = leaseOfWork()
      if (!lease || lease.ended) return onError(cause)
      const message = `A callback of its work failed (${cause.message}), so the workspace was removed; begin another attempt.`
      void lease.end(new TrainError('TOOL_SERVER_DIED', message, { cause }))
    },
    async close() {
      clearInterval(reaper)
      const closed = listening.close()
      await (await openViewer?.catch(() => null))?.close()
      await leases.close()
      await ready.close()
      await endpoint.close()
      listening.server.closeAllConnections()
      await closed
    },
  }
}

/** The error for a valid token that does not open what was requested. */
class ScopeError extends OAuthError {
  readonly scope: string

  constructor(scope: string) {
    super(OAuthErrorCode.InsufficientScope, `The token does not open "${scope}".`)
    this.scope = scope
  }
}

/**
 * Answers a request that is refused: a bad token with the challenge of OAuth, anything else with an ErrorRecord, which MCP
 * clients read as an error of JSON-RPC.
 */
async function refuse(request: IncomingMessage, response: ServerResponse, cause: unknown): Promise<void> {
  if (cause instanceof OAuthError) {
    const challenge = bearerAuthChallengeResponse(cause, cause instanceof ScopeError ? { requiredScopes: [cause.scope] } : {})
    sendJson(response, challenge.status, await challenge.json(), {
      'www-authenticate': challenge.headers.get('www-authenticate') ?? 'Bearer',
    })
  } else {
    const error = toTrainError(cause, 'ENVIRONMENT_START_FAILED')
    sendError(response, error, { jsonrpc: '2.0', id: null, error: { code: -32_602, message: error.message, data: error.toRecord() } })
  }
  if (!request.complete) discardBody(request)
}
