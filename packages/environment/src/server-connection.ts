import { type ChildProcess, spawn } from 'node:child_process'
import {
  type ErrorCode,
  ErrorRecord,
  errorCatalogue,
  type ProgramJail,
  type ToolDefinition,
  type ToolResult,
  TrainError,
} from '@aworld-train/core'
import { Client, type PriorDiscovery, ProtocolError, SdkError, SdkErrorCode, SseError, type Tool } from '@modelcontextprotocol/client'
import { childEnvironment } from './child-environment.ts'
import type { ResolvedOptions } from './environment-options.ts'
import { createHttpTransport, InvalidAnswerError, type RequestIdentity } from './http-transport.ts'
import type { ProcessGuard } from './process-guard.ts'
import { reasonOf } from './reason-of.ts'
import type { ServerDefinition, StdioDefinition } from './server-definition.ts'
import { StdioTransport } from './stdio-transport.ts'
import { mendToolLists } from './tool-list.ts'
import { invalidAnswerCode, invalidResult, streamEndCode, toToolResult } from './tool-result.ts'

/** A started server and the one connection to it. */
export interface ServerConnection {
  readonly definition: ServerDefinition
  /** Tools that the server listed when it started. */
  readonly tools: readonly ToolDefinition[]
  readonly alive: boolean
  /** Whether the server has announced another list of tools. */
  readonly toolsChanged: boolean
  /** Calls a tool. Rejects with TOOL_TIMEOUT, TOOL_SERVER_DIED, or the reason of an aborted signal. Everything else is a result. */
  call(tool: string, input: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<ToolResult>
  /** Whether the server answers anything within the grace period. */
  answers(): Promise<boolean>
  /** Calls sent over this connection. */
  readonly sentCalls: number
  /** Calls by the server's own count; `null` if it keeps none or does not answer. */
  servedCalls(): Promise<number | null>
  /** Ends the server by force. */
  kill(): Promise<void>
  close(): Promise<void>
}

export interface ConnectionContext {
  readonly options: ResolvedOptions
  readonly guard: ProcessGuard
  /** Returns the jail for servers that run in one, opened for the first. */
  jail(definition: StdioDefinition): Promise<ProgramJail>
  /** The protocol era of each server, by its identity, so that only the first connection asks. */
  readonly eras: Map<string, PriorDiscovery>
}

export interface ConnectionPlace extends RequestIdentity {
  /** Directory of the lease, or of the shared server. */
  readonly directory: string
}

/** The error for a server that did not answer within its time to start. */
class SilentServerError extends Error {}

/** Resource in which a counting server reports how many calls it has served. */
const callsResource = 'stats://calls'

/** Starts a server, or reaches a remote one, and lists its tools. Rejects with ENVIRONMENT_START_FAILED. */
export async function openConnection(
  definition: ServerDefinition,
  place: ConnectionPlace,
  context: ConnectionContext,
  signal: AbortSignal,
): Promise<ServerConnection> {
  signal.throwIfAborted()
  const era = context.eras.get(definition.identity)
  const jail = definition.kind === 'stdio' && definition.jail ? await context.jail(definition) : null
  signal.throwIfAborted()
  const first = createLink(definition, place, context, jail)
  try {
    return await connect(definition, first, context, era, signal)
  } catch (error) {
    await first.kill()
    signal.throwIfAborted()
    // A server of the older protocol may exit at the first message of the newer one.
    const hasExited = era === undefined && first.process?.describeEnd().includes('exited') && error instanceof SdkError
    if (!hasExited || error.code !== SdkErrorCode.EraNegotiationFailed) throw startError(definition, first, error)
  }
  const second = createLink(definition, place, context, jail)
  try {
    return await connect(definition, second, context, { kind: 'legacy' }, signal)
  } catch (error) {
    await second.kill()
    signal.throwIfAborted()
    throw startError(definition, second, error)
  }
}

interface Link {
  readonly transport: ReturnType<typeof createHttpTransport>['transport']
  readonly process: StdioTransport | null
  kill(): Promise<void>
  close(): Promise<void>
}

function createLink(
  definition: ServerDefinition,
  { directory, identity, authorization }: ConnectionPlace,
  { options, guard }: ConnectionContext,
  jail: ProgramJail | null,
): Link {
  // JSON may need six bytes for one byte of text, and a message holds more than the text.
  const maxMessageBytes = 6 * options.maxResultBytes + 65_536
  if (definition.kind !== 'stdio') {
    const http = createHttpTransport(definition, { identity, authorization }, maxMessageBytes)
    return { transport: mendToolLists(http.transport), process: null, kill: () => http.close(), close: () => http.close() }
  }
  const transport = mendToolLists(
    new StdioTransport({
      spawn: () => (jail ? spawnInJail(jail, definition, directory) : spawnServer(definition, directory, options)),
      maxMessageBytes,
      graceMs: options.graceMs,
      guard,
    }),
  )
  return { transport, process: transport, kill: () => transport.kill(), close: () => transport.close() }
}

function spawnServer({ command, args, env, cwd }: StdioDefinition, directory: string, { variables }: ResolvedOptions): ChildProcess {
  return spawn(command, args, {
    cwd: cwd ?? directory,
    env: childEnvironment({ AWORLD_TRAIN_DIRECTORY: directory, ...env }, variables),
    stdio: 'pipe',
    detached: process.platform !== 'win32',
    windowsHide: true,
  })
}

/**
 * A server that several rollouts share has a directory in memory. It gets neither a rollout's directory nor the base
 * directory, which is the user's.
 */
function spawnInJail(jail: ProgramJail, { command, args, env, stateless, jail: own }: StdioDefinition, directory: string): ChildProcess {
  return jail.spawn({
    command: [command, ...args],
    env: { ...(stateless ? {} : { AWORLD_TRAIN_DIRECTORY: directory }), ...env },
    directory: stateless ? null : directory,
    readable: own?.readable ?? [],
  })
}

async function connect(
  definition: ServerDefinition,
  link: Link,
  { options, eras }: ConnectionContext,
  prior: PriorDiscovery | undefined,
  signal: AbortSignal,
): Promise<ServerConnection> {
  let toolsChanged = false
  let alive = true
  const { startTimeoutMs } = definition
  // Our own deadline of a start comes first, so those of the SDK are longer.
  const timeout = startTimeoutMs + 1_000
  const client = new Client(
    { name: 'aworld-train', version: '0.1.0' },
    {
      versionNegotiation: {
        mode: 'auto',
        probe: { timeoutMs: definition.kind === 'stdio' ? Math.ceil(options.startTimeoutMs / 3) : timeout },
      },
      listChanged: {
        tools: {
          debounceMs: 20,
          onChanged: (error, tools) => {
            toolsChanged = error !== null || tools === null || JSON.stringify(tools.map(toToolDefinition)) !== listed
          },
        },
      },
    },
  )
  client.onclose = () => {
    alive = false
  }
  // The stream on which a server of the older transport answers is gone, and with it every pending answer.
  client.onerror = (error) => {
    if (error instanceof SseError) void client.close()
  }
  let listed = ''
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(startTimeoutMs)])
  const onDeadline = () => void link.kill()
  deadline.addEventListener('abort', onDeadline, { once: true })
  let tools: ToolDefinition[]
  try {
    await client.connect(link.transport, { timeout, ...(prior ? { prior } : {}) })
    // The SDK subscribes by itself only if it asks the server which protocol it speaks.
    if (prior?.kind === 'modern' && client.getServerCapabilities()?.tools?.listChanged)
      await client.listen({ toolsListChanged: true }, { timeout, signal: deadline })
    tools = (await client.listTools({}, { timeout, signal: deadline })).tools.map(toToolDefinition)
    listed = JSON.stringify(tools)
  } catch (error) {
    throw deadline.aborted && !signal.aborted ? new SilentServerError(`no answer within ${startTimeoutMs / 1000} s`) : error
  } finally {
    deadline.removeEventListener('abort', onDeadline)
  }
  const discover = client.getDiscoverResult()
  eras.set(definition.identity, client.getProtocolEra() === 'modern' && discover ? { kind: 'modern', discover } : { kind: 'legacy' })

  const counts = client.getServerCapabilities()?.resources !== undefined && definition.kind === 'stdio'
  let sent = 0
  const probe = (): { timeout: number; cacheMode: 'bypass' } => ({ timeout: options.graceMs, cacheMode: 'bypass' })
  return {
    definition,
    tools,
    get alive() {
      return alive
    },
    get toolsChanged() {
      return toolsChanged
    },
    get sentCalls() {
      return sent
    },
    async call(tool, input, callSignal) {
      sent++
      try {
        const result = await client.callTool(
          { name: tool, arguments: input },
          // A server that reports progress is at work, so its time begins again. The budget of the rollout goes on.
          { timeout: definition.callTimeoutMs, signal: callSignal, onprogress: () => {}, resetTimeoutOnProgress: true },
        )
        return toToolResult(tool, result, options.maxResultBytes)
      } catch (error) {
        if (callSignal.aborted) throw callSignal.reason
        return toAnswer(error, tool, definition, link)
      }
    },
    answers: () =>
      client.listTools({}, probe()).then(
        () => true,
        () => false,
      ),
    async servedCalls() {
      if (!counts || !alive) return null
      const read = await client.readResource({ uri: callsResource }, probe()).catch(() => null)
      const content = read?.contents[0]
      const served = content && 'text' in content ? Number(content.text) : Number.NaN
      return Number.isSafeInteger(served) ? served : null
    },
    async kill() {
      alive = false
      await link.kill()
    },
    async close() {
      alive = false
      await link.close()
      await client.close().catch(() => {})
    },
  }
}

/** Translates the SDK's errors of a call into an answer for the model, or throws a TrainError. */
function toAnswer(error: unknown, tool: string, definition: ServerDefinition, link: Link): ToolResult {
  const record = error instanceof ProtocolError ? ErrorRecord.safeParse(error.data).data : undefined
  // An environment server marks which of its errors are faults of the environment and not answers for the model.
  if (record?.boundary === 'environment' && record.code in errorCatalogue)
    throw new TrainError(record.code as ErrorCode, record.message, { cause: error, details: { server: definition.name, tool } })
  if (error instanceof ProtocolError && error.code !== streamEndCode) {
    return error.code === invalidAnswerCode ? invalidResult(error.message) : { content: error.message, isError: true }
  }
  const invalid = [error, (error as Error | null)?.cause].find((candidate) => candidate instanceof InvalidAnswerError)
  if (invalid) return invalidResult((invalid as Error).message)
  const details = { server: definition.name, tool }
  if (error instanceof SdkError && error.code === SdkErrorCode.InvalidResult) return invalidResult(error.message)
  if (error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout) {
    const message = `The tool "${tool}" of the MCP server "${definition.name}" gave no answer within ${definition.callTimeoutMs / 1000} s; raise the server's timeout, or make the tool answer sooner.`
    throw new TrainError('TOOL_TIMEOUT', message, { cause: error, details })
  }
  const why = link.process ? link.process.describeEnd() : reasonOf(error)
  const message = `The MCP server "${definition.name}" was lost during a call of "${tool}": ${why}.`
  throw new TrainError('TOOL_SERVER_DIED', message, { cause: error, details })
}

function startError(definition: ServerDefinition, link: Link, error: unknown): TrainError {
  const where = definition.kind === 'stdio' ? [definition.command, ...definition.args].join(' ') : definition.url.href
  const reason = reasonOf(error)
  const end = link.process?.wasStarted ? `; ${link.process.describeEnd()}` : ''
  const message = `The MCP server "${definition.name}" (${where}) did not start: ${reason}${end}. ${startRemedy(definition, error, reason)}`
  return new TrainError('ENVIRONMENT_START_FAILED', message, { cause: error, details: { server: definition.name } })
}

function startRemedy(definition: ServerDefinition, error: unknown, reason: string): string {
  const isJailed = definition.kind === 'stdio' && definition.jail !== null
  if (error instanceof SilentServerError) {
    const remedy = 'Make it start sooner, or raise its "timeout" in the configuration.'
    return isJailed ? `${remedy} Its jail has no network, so it has to be installed already.` : remedy
  }
  if (isJailed) return 'Check its command, and name what it reads in "sandbox": { "read": [paths] }.'
  if (definition.kind === 'stdio') return 'Check its command.'
  return /\b40[13]\b/.test(reason) ? 'Check the token in its headers.' : 'Check its url, and that it runs.'
}

function toToolDefinition({ name, description, inputSchema }: Tool): ToolDefinition {
  return { name, ...(description === undefined ? {} : { description }), parameters: inputSchema }
}
