import { type ErrorCode, errorCatalogue, filesPath, TrainError, workersPath } from '@aworld-train/core'
import { Agent, request } from 'undici'
import { WebSocket } from 'ws'

/** Address and credentials of a worker's coordinator. */
export interface CoordinatorConnection {
  /** Address of the coordinator's rollout service, without a path. */
  readonly url: string
  readonly token?: string | undefined
  /** Certificate authority in PEM, for a coordinator with a certificate of its own. */
  readonly ca?: string | Buffer | undefined
}

/** Longest time of one attempt to connect. */
const connectMs = 10_000

/** Longest silence of a coordinator that sends a file. */
const silenceMs = 30_000

const authorizationOf = (token: string | undefined) => (token === undefined ? {} : { authorization: `Bearer ${token}` })

/** Codes of Node and OpenSSL for a certificate that waiting does not mend, and for a port without TLS. */
const certificateProblems = /^(CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_|ERR_SSL_)/
const certificateRemedy = 'Name the file of its authority in NODE_EXTRA_CA_CERTS, or correct the certificate or the address.'

/**
 * Rejects with COORDINATOR_UNREACHABLE, with SERVICE_UNAUTHORIZED, and with CONFIG_INVALID where the address takes no workers or
 * its certificate is not trusted.
 */
export function connectWorker({ url, token, ca }: CoordinatorConnection): Promise<WebSocket> {
  const target = new URL(workersPath, url.replace(/^http/, 'ws'))
  const socket = new WebSocket(target, {
    headers: authorizationOf(token),
    handshakeTimeout: connectMs,
    perMessageDeflate: false,
    ...(ca !== undefined && { ca }),
  })
  return new Promise((resolve, reject) => {
    socket.once('open', () => resolve(socket))
    socket.once('unexpected-response', (_request, response) => {
      socket.terminate()
      reject(refusedWith(response.statusCode ?? 0, url))
    })
    socket.once('error', (cause: NodeJS.ErrnoException) => {
      const reason = cause.message || cause.code
      const error = certificateProblems.test(cause.code ?? '')
        ? new TrainError('CONFIG_INVALID', `${url} has no certificate that this worker trusts: ${reason}. ${certificateRemedy}`, { cause })
        : new TrainError('COORDINATOR_UNREACHABLE', `The coordinator ${url} does not answer: ${reason}.`, { cause })
      reject(error)
    })
  })
}

function refusedWith(status: number, url: string): TrainError {
  if (status === 401)
    return new TrainError(
      'SERVICE_UNAUTHORIZED',
      `The coordinator ${url} does not take this token; name the variable that has its token with --token-env.`,
    )
  if (status === 404)
    return new TrainError('CONFIG_INVALID', `${url} takes no workers; name a coordinator whose configuration has "executor".`)
  return new TrainError('COORDINATOR_UNREACHABLE', `The coordinator ${url} answered with ${status}.`)
}

/** Asks the coordinator for files of tasks by hash. */
export function createFileFetch({
  url,
  token,
  ca,
}: CoordinatorConnection): (sha256: string, signal: AbortSignal) => Promise<AsyncIterable<Buffer>> {
  const dispatcher = ca === undefined ? undefined : new Agent({ connect: { ca } })
  return async (sha256, signal) => {
    const { statusCode, body } = await request(new URL(filesPath + sha256, url), {
      headers: authorizationOf(token),
      signal,
      headersTimeout: silenceMs,
      bodyTimeout: silenceMs,
      ...(dispatcher && { dispatcher }),
    })
    if (statusCode === 200) return body
    const answer = (await body.json().catch(() => null)) as { readonly error?: { readonly message?: string } } | null
    throw new Error(answer?.error?.message ?? `it answers ${statusCode}`)
  }
}

/** The error with which a coordinator has rejected a worker. */
export function refusal({ code, message }: { readonly code: string; readonly message: string }): TrainError {
  return new TrainError(code in errorCatalogue ? (code as ErrorCode) : 'WORKER_INVALID', message)
}
