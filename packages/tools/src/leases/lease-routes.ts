import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  filesRefused,
  type LeaseAnswer,
  LeaseCollect,
  LeaseCommand,
  LeaseCopy,
  type LeaseCopyAnswer,
  type LeaseFiles,
  LeaseOpen,
  ToolError,
  TrainError,
  toCollectedFile,
  toTrainError,
  type Workspace,
} from '@aworld-train/core'
import { BodyError, readBody, streamBody } from '@aworld-train/http'
import type { z } from 'zod'
import { sendError, sendJson } from '../http-answer.ts'
import { notCopied } from './copy-lease.ts'
import type { Lease } from './lease.ts'
import type { LeaseTable } from './lease-table.ts'

/** Longest request for a lease, which is small; a file may be larger. */
const maxOpenBytes = 65_536

/** Longest time of a command that sets a workspace up. */
const commandMs = 600_000
/** Most characters of a command's output that an error shows. */
const shownOutput = 2_000

/** Most problems that an answer shows, so that a body of many errors does not make an answer of many kilobytes. */
const shownProblems = 5

export interface LeaseRoutesOptions {
  readonly leases: LeaseTable
  /** Largest file that may be put into a workspace. */
  readonly maxFileBytes: number
  /** Throws LEASE_INVALID for an unknown server. */
  readonly checkServers: (names: readonly string[]) => void
  /** Address of a lease below `/v1/leases`, relative or whole. */
  readonly locationOf: (lease: Lease) => string
  /** Opens the page that shows desktops. Rejects if it cannot be opened. */
  readonly showDesktops: () => Promise<void>
  /** Makes the answer with a new token, and starts the time of the lease again. */
  readonly toAnswer: (lease: Lease) => Promise<LeaseAnswer>
}

/** Answers an authorised request for `/v1/leases` and the paths below. `path` is split and has no query. */
export type LeaseRoutes = (request: IncomingMessage, response: ServerResponse, path: readonly string[]) => Promise<void>

/**
 * Serves `POST /v1/leases`, `GET` and `DELETE /v1/leases/{id}`, and below a lease `GET` and `PUT files/{name}`, `POST commands`,
 * `POST collections` and `POST copies`.
 */
export function createLeaseRoutes({
  leases,
  maxFileBytes,
  checkServers,
  locationOf,
  showDesktops,
  toAnswer,
}: LeaseRoutesOptions): LeaseRoutes {
  async function open(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const opening = await readJson(request, response, 'LeaseOpen', LeaseOpen)
    checkServers(opening.servers ?? [])
    if (opening.desktop) await showDesktops()
    const lease = await leases.open(opening)
    sendJson(response, 200, await toAnswer(lease), { location: locationOf(lease) })
  }

  function find(id: string): Lease {
    const lease = leases.find(id)
    if (!lease) throw new TrainError('LEASE_UNKNOWN', 'There is no lease of that id; open one for a new attempt.')
    if (lease.ended) throw lease.ended
    return lease
  }

  /** Reads JSON that fits a schema. */
  async function readJson<Schema extends z.ZodType>(
    request: IncomingMessage,
    response: ServerResponse,
    name: string,
    schema: Schema,
  ): Promise<z.output<Schema>> {
    const body = await readWhole(request, response, maxOpenBytes)
    let json: unknown
    try {
      json = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
    } catch {
      throw invalid(`The body is not JSON in UTF-8; send a ${name}.`)
    }
    const parsed = schema.safeParse(json)
    if (parsed.success) return parsed.data
    const problems = parsed.error.issues.slice(0, shownProblems).map(({ path, message }) => `${path.join('.') || 'the body'}: ${message}`)
    throw invalid(`The body is no ${name}. ${problems.join('; ')}.`)
  }

  async function run(request: IncomingMessage, response: ServerResponse, id: string): Promise<void> {
    const lease = find(id)
    const { command } = await readJson(request, response, 'LeaseCommand', LeaseCommand)
    await inWorkspace(lease, async (workspace) => {
      const { exitCode, output } = await workspace.run({ command: ['bash', '-c', command], timeoutMs: commandMs }, lease.signal)
      if (exitCode !== 0) throw invalid(`It ended with exit code ${exitCode} and printed:\n${output.slice(-shownOutput).trim()}\n`)
    })
    response.writeHead(204).end()
  }

  /** Answers with the files of a workspace that fit patterns. */
  async function collect(request: IncomingMessage, response: ServerResponse, id: string): Promise<void> {
    const lease = find(id)
    const { patterns } = await readJson(request, response, 'LeaseCollect', LeaseCollect)
    const files = await inWorkspace(lease, (workspace) =>
      workspace.collect(patterns, lease.signal).catch((cause: unknown) => {
        throw cause instanceof ToolError ? filesRefused(cause.message.replace(/\.$/, '')) : cause
      }),
    )
    sendJson(response, 200, { version: 1, files: files.map(toCollectedFile) } satisfies LeaseFiles)
  }

  /** Works in a workspace. A problem that the caller can correct becomes LEASE_INVALID; a workspace that is gone ends the lease. */
  async function inWorkspace<Value>(lease: Lease, work: (workspace: Workspace) => Promise<Value>): Promise<Value> {
    const release = lease.use()
    try {
      return await lease.work(async () => work(await lease.workspace()))
    } catch (cause) {
      if (cause instanceof ToolError) throw invalid(cause.message)
      if (cause instanceof TrainError && cause.code === 'TOOL_SERVER_DIED') void lease.end(cause)
      throw cause
    } finally {
      release()
    }
  }

  async function put(request: IncomingMessage, response: ServerResponse, id: string, name: string): Promise<void> {
    const lease = find(id)
    const { 'content-length': length } = request.headers
    // A body of unknown size is read whole, because a file with a missing part would look like a different one.
    const bytes =
      length === undefined
        ? await readWhole(request, response, maxFileBytes)
        : { size: Number(length), chunks: streamBody(request, response, maxFileBytes) }
    await inWorkspace(lease, (workspace) => workspace.put(name, bytes, lease.signal)).catch(refuseBody)
    response.writeHead(204).end()
  }

  /** Answers with the lease of another rollout that has the same files. */
  async function copy(request: IncomingMessage, response: ServerResponse, id: string): Promise<void> {
    const lease = find(id)
    const copying = await readJson(request, response, 'LeaseCopy', LeaseCopy)
    const release = lease.use()
    // An end of the copy is no end of this lease, so that it is not worked with as elsewhere.
    const opened = await lease
      .work(() => leases.copy(lease, copying))
      .catch((cause: unknown) => {
        throw cause instanceof ToolError ? invalid(cause.message) : cause
      })
      .finally(release)
    const answer = await toAnswer(opened)
    sendJson(response, 200, { ...answer, notCopied: [...notCopied(answer.tier)] } satisfies LeaseCopyAnswer)
  }

  async function get(response: ServerResponse, id: string, name: string): Promise<void> {
    const lease = find(id)
    const bytes = await inWorkspace(lease, (workspace) => workspace.get(name, maxFileBytes, lease.signal))
    response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': bytes.length }).end(bytes)
  }

  async function end(response: ServerResponse, id: string): Promise<void> {
    await leases.find(id)?.end(new TrainError('TOOL_SERVER_DIED', 'The lease was closed.'))
    response.writeHead(204).end()
  }

  async function route(request: IncomingMessage, response: ServerResponse, [id, files, ...name]: readonly string[]): Promise<void> {
    const { method } = request
    if (id === undefined) {
      checkMethod(method, ['POST'])
      await open(request, response)
    } else if (files === undefined) {
      checkMethod(method, ['GET', 'DELETE'])
      if (method === 'DELETE') await end(response, id)
      else sendJson(response, 200, await toAnswer(find(id)))
    } else if (files === 'files' && name.length > 0) {
      checkMethod(method, ['GET', 'PUT'])
      const path = decode(name.join('/'))
      await (method === 'GET' ? get(response, id, path) : put(request, response, id, path))
    } else if (files === 'collections' && name.length === 0) {
      checkMethod(method, ['POST'])
      await collect(request, response, id)
    } else if (files === 'copies' && name.length === 0) {
      checkMethod(method, ['POST'])
      await copy(request, response, id)
    } else if (files === 'commands' && name.length === 0) {
      checkMethod(method, ['POST'])
      await run(request, response, id)
    } else
      throw invalid(
        'Served are POST /v1/leases, GET and DELETE /v1/leases/{id}, and below it GET and PUT files/{name}, POST commands, POST collections, POST copies.',
        { status: 404 },
      )
  }

  return async (request, response, path) => {
    try {
      await route(request, response, path)
    } catch (cause) {
      sendError(response, toTrainError(cause, 'ENVIRONMENT_START_FAILED'))
    }
  }
}

function invalid(message: string, details?: Record<string, unknown>): TrainError {
  return new TrainError('LEASE_INVALID', message, details ? { details } : {})
}

function checkMethod(method: string | undefined, methods: readonly string[]): void {
  if (method !== undefined && methods.includes(method)) return
  const allow = methods.join(', ')
  throw invalid(`That path answers ${allow}, not ${method}.`, { status: 405, allow })
}

function decode(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    throw invalid('The name of the file is not percent-encoded UTF-8.')
  }
}

async function readWhole(request: IncomingMessage, response: ServerResponse, maxBytes: number): Promise<Buffer> {
  return await readBody(request, response, maxBytes).catch(refuseBody)
}

function refuseBody(cause: unknown): never {
  if (!(cause instanceof BodyError)) throw cause
  throw invalid(`${cause.message}.`, cause.reason === 'too-large' ? { status: 413 } : {})
}
