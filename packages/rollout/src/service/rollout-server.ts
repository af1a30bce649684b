import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { channelPath, filesPath, TrainError, toTrainError, type WorkerHealth, workersPath } from '@aworld-train/core'
import { createBearerCheck, isLoopback, openHttpServer, requestUrl, type SocketRefusal, type TlsIdentity } from '@aworld-train/http'
import type { ChannelServer } from '../channel/channel-types.ts'
import type { WorkerPool } from '../workers/worker-pool.ts'
import { sendError } from './http-answer.ts'
import { refuseUpgrade } from './refuse-upgrade.ts'
import { createRoutes, type ServiceRequest } from './rollout-routes.ts'
import { defaultRolloutServerLimits, type RolloutServerLimits } from './rollout-server-limits.ts'
import type { RolloutService } from './rollout-service.ts'
import { createServiceMetrics } from './service-metrics.ts'

/** Paths for probes, which carry no token. Their answers say no more than yes or no. */
const openPaths: ReadonlySet<string> = new Set(['/health', '/ready'])

/** Why a request or a socket was refused before it reached the service. */
export type ServiceRefusal = SocketRefusal | 'unauthorized' | 'foreign-page'

export interface ServedWorkers {
  readonly pool: Pick<WorkerPool, 'upgrade' | 'sendFile' | 'disconnect'>
  /** The current workers, for metrics. */
  readonly rows?: (() => readonly WorkerHealth[]) | undefined
  /**
   * Required of workers as `Authorization: Bearer …`, on loopback too. It opens only the workers' paths, which the
   * token of clients does not open.
   */
  readonly token: string
}

export interface RolloutServerOptions {
  /** The caller closes it. */
  readonly service: RolloutService
  /** Defaults to loopback. */
  readonly host?: string | undefined
  /** 0 (the default) takes any free port. */
  readonly port?: number | undefined
  readonly tls?: TlsIdentity | undefined
  readonly insecure?: boolean | undefined
  /** Names besides those of loopback that `Host` may have where the server listens on loopback without TLS. */
  readonly allowedHosts?: readonly string[] | undefined
  /** Required of clients and trainer clients as `Authorization: Bearer …` by all paths but `/health` and `/ready`. It may be left out on loopback only. */
  readonly token?: string | undefined
  readonly limits?: Partial<RolloutServerLimits> | undefined
  /** Serves trainer clients at `/v1/channel`; its connections end with the server. */
  readonly channel?: Pick<ChannelServer, 'upgrade' | 'disconnect' | 'counts'> | undefined
  /** Takes workers at `/v1/workers` and gives them files of tasks at `/v1/files`. Their connections end with the server. */
  readonly workers?: ServedWorkers | undefined
  readonly onRefusal?: ((refusal: ServiceRefusal) => void) | undefined
}

export interface RolloutServer {
  readonly url: string
  /** Requests that wait or stream. */
  waiting(): number
  sockets(): number
  /** Ends streams and waits, and frees the port. */
  close(): Promise<void>
}

/**
 * Serves a rollout service over HTTP. Rejects with CONFIG_INVALID if it would answer beyond loopback without TLS or without a
 * token, and with GATEWAY_PORT_IN_USE.
 */
export async function createRolloutServer(options: RolloutServerOptions): Promise<RolloutServer> {
  const { service, host = '127.0.0.1', port = 0, tls, insecure, allowedHosts, token, channel, workers, onRefusal } = options
  const limits = { ...defaultRolloutServerLimits, ...options.limits }
  if (token === undefined && !isLoopback(host)) {
    throw new TrainError(
      'CONFIG_INVALID',
      `The rollout service would answer anyone who reaches ${host}; set a token, or listen on 127.0.0.1.`,
    )
  }
  if (token === '') throw new TrainError('CONFIG_INVALID', 'The token of the rollout service is empty; give it at least one character.')
  if (workers && workers.token === token)
    throw new TrainError(
      'CONFIG_INVALID',
      'Clients and workers of the rollout service have the same token; take another for workers, which run tools that a model drives.',
    )
  const isClient = token === undefined ? () => true : createBearerCheck(token)
  const isWorker = workers && createBearerCheck(workers.token)
  const closing = new AbortController()
  let waiting = 0
  let sockets = () => 0
  const refusals = new Map<string, number>()
  const refuse = (reason: ServiceRefusal) => {
    refusals.set(reason, (refusals.get(reason) ?? 0) + 1)
    onRefusal?.(reason)
  }
  const metrics = createServiceMetrics({
    service,
    waiting: () => waiting,
    sockets: () => sockets(),
    refusals,
    channel,
    workers: workers?.rows,
  })
  const route = createRoutes({ service, limits, metrics })

  /** Throws for a request without the token of its path. Where no token is set, throws for a request of a page in a browser. */
  function requireAllowed(path: string, headers: IncomingHttpHeaders): void {
    if (openPaths.has(path)) return
    const isOfWorkers = path === workersPath || path.startsWith(filesPath)
    const isAuthorized = isWorker && isOfWorkers ? isWorker : isClient
    if (!isAuthorized(headers.authorization)) {
      refuse('unauthorized')
      throw new TrainError('SERVICE_UNAUTHORIZED', 'The token of the service is missing or wrong; send it as "Authorization: Bearer …".')
    }
    // A browser names the page that sends a request. Any page may reach loopback without permission. Programs name no page.
    if (token === undefined && headers.origin !== undefined) {
      refuse('foreign-page')
      const message = 'A page in a browser is no client and no trainer; give the service a token for clients that name an Origin.'
      throw new TrainError('HOST_REFUSED', message, { details: { status: 403 } })
    }
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const path = requestUrl(request).pathname
      requireAllowed(path, request.headers)
      if (workers && path.startsWith(filesPath)) await workers.pool.sendFile(request, response)
      else await route(toServiceRequest(request, response))
    } catch (cause) {
      if (!response.destroyed) sendError(response, toTrainError(cause, 'GATEWAY_FAILED'))
    }
  }

  function toServiceRequest(request: IncomingMessage, response: ServerResponse): ServiceRequest {
    return {
      request,
      response,
      async whileWaiting(work) {
        if (waiting >= limits.maxWaiting) {
          const message = `${waiting} requests wait already; send this one again when one of them has been answered, or raise maxWaiting.`
          throw new TrainError('ROLLOUT_QUEUE_FULL', message)
        }
        const disconnection = new AbortController()
        response.once('close', () => disconnection.abort())
        waiting++
        try {
          await work(AbortSignal.any([disconnection.signal, closing.signal]))
        } finally {
          waiting--
        }
      },
    }
  }

  function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    // A socket may fail before a handler has taken it over.
    socket.on('error', () => socket.destroy())
    const { pathname } = requestUrl(request)
    try {
      requireAllowed(pathname, request.headers)
    } catch (error) {
      const { code, message } = error as TrainError
      refuseUpgrade(socket, code === 'HOST_REFUSED' ? 403 : 401, message)
      return
    }
    const server = pathname === channelPath ? channel : pathname === workersPath ? workers?.pool : undefined
    if (server) server.upgrade(request, socket, head)
    else
      refuseUpgrade(
        socket,
        404,
        `This rollout service serves no ${pathname === workersPath ? 'workers' : 'channel'} at ${pathname.slice(0, 200)}.`,
      )
  }

  const listening = await openHttpServer({
    what: 'The rollout service',
    host,
    port,
    tls,
    insecure,
    allowedHosts,
    limits,
    portError: 'GATEWAY_PORT_IN_USE',
    handle: (request, response) => void answer(request, response),
    upgrade,
    onRefusal: refuse,
  })
  const { server, url } = listening
  sockets = listening.sockets
  return {
    url,
    waiting: () => waiting,
    sockets,
    async close() {
      const closed = listening.close()
      closing.abort(new Error('The server was closed.'))
      channel?.disconnect()
      workers?.pool.disconnect()
      server.closeIdleConnections()
      // Waiting requests are being answered. Those that take longer than this are cut off.
      const late = setTimeout(() => listening.server.closeAllConnections(), 500)
      await closed
      clearTimeout(late)
    },
  }
}
