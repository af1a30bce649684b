import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { filesPath, TrainError, workersPath } from '@aworld-train/core'
import { createBearerCheck, openHttpServer, type TlsIdentity } from '@aworld-train/http'
import { sendError } from '../service/http-answer.ts'
import { refuseUpgrade } from '../service/refuse-upgrade.ts'
import { defaultRolloutServerLimits } from '../service/rollout-server-limits.ts'
import type { WorkerPool } from './worker-pool.ts'

export interface WorkerServer {
  readonly url: string
  close(): Promise<void>
}

export interface WorkerServerOptions {
  readonly token: string
  /** Loopback by default. */
  readonly host?: string | undefined
  /** Any free port by default. */
  readonly port?: number | undefined
  readonly tls?: TlsIdentity | undefined
  /** Allows listening beyond loopback without `tls`. */
  readonly insecure?: boolean | undefined
  /** Address whose host the workers' URL takes. */
  readonly publicUrl?: string | undefined
}

const unauthorized = 'The token of the coordinator is missing or wrong.'

/** Opens a port that takes workers with a token and serves nothing else, for a coordinator without a rollout service. */
export async function createWorkerServer(
  pool: Pick<WorkerPool, 'upgrade' | 'sendFile' | 'disconnect'>,
  { token, host = '127.0.0.1', port = 0, tls, insecure, publicUrl }: WorkerServerOptions,
): Promise<WorkerServer> {
  const isAuthorized = createBearerCheck(token)
  const { url, close } = await openHttpServer({
    what: 'The coordinator',
    host,
    port,
    tls,
    insecure,
    allowedHosts: publicUrl === undefined ? [] : [new URL(publicUrl).hostname],
    limits: defaultRolloutServerLimits,
    portError: 'GATEWAY_PORT_IN_USE',
    handle(request, response) {
      if (!isAuthorized(request.headers.authorization)) sendError(response, new TrainError('SERVICE_UNAUTHORIZED', unauthorized))
      else if (request.url?.startsWith(filesPath)) void pool.sendFile(request, response)
      else response.writeHead(404, { 'content-length': 0 }).end()
    },
    upgrade(request: IncomingMessage, socket: Duplex, head: Buffer) {
      socket.on('error', () => socket.destroy())
      if (!isAuthorized(request.headers.authorization)) refuseUpgrade(socket, 401, unauthorized)
      else if (request.url !== workersPath) refuseUpgrade(socket, 404, `Only ${workersPath} is served.`)
      else pool.upgrade(request, socket, head)
    },
  })
  const address = new URL(url)
  if (publicUrl !== undefined) address.hostname = new URL(publicUrl).hostname
  return {
    url: address.origin,
    async close() {
      pool.disconnect()
      await close()
    },
  }
}
