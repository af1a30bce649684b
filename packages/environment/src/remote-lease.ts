import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import {
  ErrorRecord,
  filesByName,
  fromCollectedFile,
  LeaseAnswer,
  type LeaseCollect,
  type LeasedSandbox,
  LeaseFiles,
  type LeaseOpen,
  type LeaseRequest,
  TrainError,
  type WorkspaceFile,
} from '@aworld-train/core'
import { fetch, Response, request as undiciRequest } from 'undici'
import { reasonOf } from './reason-of.ts'
import { sendPatiently } from './send-patiently.ts'
import type { HttpDefinition } from './server-definition.ts'

/** The lease of one attempt on an environment server. */
export interface RemoteLease {
  /** Address of its MCP endpoint. Where several servers share an address, it is that of the one with the lease. */
  readonly url: URL
  /** `Authorization` of its requests. */
  authorization(): string
  readonly sandbox: LeasedSandbox
  /** Reads the files that fit one of the globs. Rejects with FILES_REFUSED or TOOL_SERVER_DIED. */
  collect(patterns: readonly string[], signal: AbortSignal): Promise<readonly WorkspaceFile[]>
  close(): Promise<void>
}

/** Statuses that show that a server is no environment server: it does not know the path, or the token is not for it. */
const leasesNothing: ReadonlySet<number> = new Set([401, 403, 404, 405, 501])
/** How long the server may take to forget a lease. Later it does so by itself. */
const closeMs = 10_000
/** Share of a token's time after which it is renewed. */
const renewAt = 0.5

/**
 * Leases a workspace from the environment server of `definition`, puts the task's files and those of its set-up into it, and runs the
 * commands of the set-up. `null` if that server leases nothing, like any other MCP server. The lease is renewed until it is closed. Rejects
 * with ENVIRONMENT_START_FAILED.
 */
export async function openRemoteLease(
  definition: HttpDefinition,
  { rollout, attempt, sample, task }: LeaseRequest,
  baseDirectory: string,
  signal: AbortSignal,
): Promise<RemoteLease | null> {
  const { name, url, headers, desktop, net, startTimeoutMs } = definition
  const root = new URL('/v1/leases', url)
  const within = () => AbortSignal.any([signal, AbortSignal.timeout(startTimeoutMs)])
  const send = (address: URL | string, method: string, body?: string, abort = within()) => {
    const init = {
      method,
      headers: {
        ...headers,
        ...(typeof body === 'string' && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body }),
      signal: abort,
    }
    return sendPatiently(() => fetch(address, init), startTimeoutMs, abort)
  }
  const fail = (what: string, cause?: unknown): never => {
    signal.throwIfAborted()
    const reason = cause === undefined ? '' : `: ${reasonOf(cause)}`
    const remedy = reason.includes('ECONNREFUSED') ? ' Nothing listens there; "aworld-train env start" starts an environment.' : ''
    throw new TrainError(
      'ENVIRONMENT_START_FAILED',
      `The workspace of task "${task.id}" on the environment "${name}" (${url.origin}) is not ready: ${what}${reason}.${remedy}`,
      { cause, details: { server: name, task: task.id } },
    )
  }
  const check = async (what: string, answer: ReturnType<typeof send>) => {
    const response = await answer.catch((cause: unknown) => fail(what, cause))
    if (!response.ok) fail(`${what}: ${await errorText(response)}`)
    return response
  }

  const request: LeaseOpen = { version: 1, rollout, attempt, sample, task: task.id, ...(desktop && { desktop }), ...(net && { net }) }
  const opened = await send(root, 'POST', JSON.stringify(request)).catch((cause: unknown) => fail('no lease was opened', cause))
  if (leasesNothing.has(opened.status)) {
    const wanted = desktop ? 'desktop' : net ? 'way to the web' : null
    if (wanted !== null) fail(`it leases no workspace and so no ${wanted}: ${await errorText(opened)}`)
    await opened.body?.cancel()
    return null
  }
  if (!opened.ok) fail(`no lease was opened: ${await errorText(opened)}`)
  const read = async (response: Awaited<ReturnType<typeof send>>) => {
    const parsed = LeaseAnswer.safeParse(await response.json().catch(() => null))
    return parsed.success ? parsed.data : fail('the server answered with something that is no lease; check its version')
  }
  const closeAt = async (address: URL) => {
    const response = await send(address, 'DELETE', undefined, AbortSignal.timeout(closeMs)).catch(() => null)
    await response?.body?.cancel()
  }
  const location = opened.headers.get('location')
  const located = location === null ? null : URL.parse(location, root.href)
  const isExposed = url.protocol === 'https:' && located !== null && located.protocol !== 'https:'
  let lease = await read(opened).catch(async (error: unknown) => {
    if (located && !isExposed) await closeAt(located)
    throw error
  })
  const address = located && !isExposed ? located : new URL(`${root}/${encodeURIComponent(lease.id)}`)
  let timer: NodeJS.Timeout | undefined
  const close = async () => {
    clearTimeout(timer)
    timer = undefined
    await closeAt(address)
  }
  const renewLater = () => {
    timer = setTimeout(
      async () => {
        const response = await send(address, 'GET').catch(() => null)
        if (response?.ok) lease = await read(response).catch(() => lease)
        else await response?.body?.cancel()
        if (timer !== undefined && lease.expiresAt > Date.now()) renewLater()
      },
      Math.max(1_000, renewAt * (lease.expiresAt - Date.now())),
    )
    timer.unref()
  }

  try {
    if (isExposed) fail(`its server is at ${located.origin}, without encryption; start it with a --public-url of https`)
    const put = (file: string, bytes: Buffer) => check(`the file ${file} was not taken`, sendFile(file, bytes))
    // `fetch` copies a body before it sends it. For 10 MB that takes longer than sending and writing the file.
    const sendFile = async (file: string, bytes: Buffer) => {
      const url = `${address}/files/${file.split('/').map(encodeURIComponent).join('/')}`
      const abort = within()
      const sendOnce = async () => {
        const { statusCode, headers: answered, body } = await undiciRequest(url, { method: 'PUT', headers, body: bytes, signal: abort })
        const text = await body.text()
        const retryAfter = answered['retry-after']
        return new Response(text === '' ? null : text, {
          status: statusCode,
          ...(typeof retryAfter === 'string' && { headers: { 'retry-after': retryAfter } }),
        })
      }
      return await sendPatiently(sendOnce, startTimeoutMs, abort)
    }
    for (const [file, local] of filesByName(task.files ?? [], fail)) {
      const source = resolve(baseDirectory, local)
      await put(file, await readFile(source).catch((cause: unknown) => fail(`its file ${source} cannot be read`, cause)))
    }
    for (const [file, text] of Object.entries(task.setup?.files ?? {})) await put(file, Buffer.from(text))
    for (const command of task.setup?.commands ?? [])
      await check(
        `the command ${JSON.stringify(command)} of its set-up failed`,
        send(`${address}/commands`, 'POST', JSON.stringify({ command })),
      )
  } catch (error) {
    await close()
    throw error
  }
  renewLater()

  async function collect(patterns: readonly string[], abort: AbortSignal): Promise<readonly WorkspaceFile[]> {
    const lost = (why: string, cause?: unknown) =>
      new TrainError('TOOL_SERVER_DIED', `The files of the workspace on the environment "${name}" (${url.origin}) are lost: ${why}.`, {
        cause,
      })
    const body: LeaseCollect = { version: 1, patterns: [...patterns] }
    const response = await send(`${address}/collections`, 'POST', JSON.stringify(body), abort).catch((cause: unknown) => {
      throw lost(reasonOf(cause), cause)
    })
    const text = await response.text().catch((cause: unknown) => {
      throw lost(reasonOf(cause), cause)
    })
    const files = LeaseFiles.safeParse(parsedJson(text))
    if (response.ok && files.success) return files.data.files.map(fromCollectedFile)
    const error = readError(text)
    if (error?.code === 'FILES_REFUSED') throw new TrainError('FILES_REFUSED', error.message)
    throw lost(error?.message.replace(/\.$/, '') ?? `the server answered ${response.status}; check its version`)
  }

  return {
    collect,
    url: address.origin === url.origin ? url : new URL(lease.url),
    sandbox: { url: url.href, tier: lease.tier, notices: lease.notices, ...pageOfDesktops(lease.desktopUrl) },
    authorization: () => `Bearer ${lease.token}`,
    close,
  }
}

/** The page of a lease's desktop, without the lease. */
function pageOfDesktops(ofLease: string | undefined): Pick<LeasedSandbox, 'desktopUrl'> {
  if (ofLease === undefined) return {}
  const page = new URL(ofLease)
  page.searchParams.delete('lease')
  return { desktopUrl: page.href }
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** The error in the answer of an environment server; undefined in another answer. */
function readError(text: string): ErrorRecord | undefined {
  const answer = parsedJson(text)
  return typeof answer === 'object' && answer !== null && 'error' in answer ? ErrorRecord.safeParse(answer.error).data : undefined
}

/** The message of an error record, or the status and the first words of another answer. */
async function errorText(response: Awaited<ReturnType<typeof fetch>>): Promise<string> {
  const text = await response.text().catch(() => '')
  return readError(text)?.message.replace(/\.$/, '') ?? `status ${response.status} ${text.slice(0, 200)}`.trim()
}
