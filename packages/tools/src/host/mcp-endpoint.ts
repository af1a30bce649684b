import type { IncomingMessage, ServerResponse } from 'node:http'
import { didYouMean } from '@aworld-train/core'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { type AuthInfo, createMcpHandler, ProtocolError, ProtocolErrorCode, Server } from '@modelcontextprotocol/server'
import type { Lease } from '../leases/lease.ts'
import type { OfferedTool } from './offered-tools.ts'
import { runTool, type ToolWorld } from './run-tool.ts'

/** A caller, and the tools that it may call. */
export interface Caller {
  readonly auth: AuthInfo
  readonly tools: readonly OfferedTool[]
  /** Name of a shell within the lease. */
  readonly session: string
  /** Returns the lease; a client without one gets it at its first call of a tool. */
  lease(): Lease
}

export interface McpEndpoint {
  handle(request: IncomingMessage, response: ServerResponse, caller: Caller): void
  readonly calls: { readonly total: number; readonly errors: number }
  close(): Promise<void>
}

export interface McpEndpointOptions {
  readonly world: ToolWorld
  /** Longest request, in bytes. */
  readonly maxBodyBytes: number
}

/** MCP over streamable HTTP, in both eras of the protocol. Every request has a server of its own; only its lease has state. */
export function createMcpEndpoint({ world, maxBodyBytes }: McpEndpointOptions): McpEndpoint {
  const calls = { total: 0, errors: 0 }
  /** Controllers of running calls. In the older era another request cancels a call, by the id that its client gave it. */
  const running = new Map<string, AbortController>()

  function createServer(caller: Caller): Server {
    const server = new Server({ name: 'aworld-train-environment', version: '0.1.0' }, { capabilities: { tools: {} } })
    server.setRequestHandler('tools/list', () => ({ tools: caller.tools.map(({ listing }) => listing) }))
    server.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => {
      const offered = caller.tools.find(({ listing }) => listing.name === params.name)
      if (!offered) {
        const names = caller.tools.map(({ listing }) => listing.name)
        const name = params.name.slice(0, 200)
        const refusal = refusalOf(name, caller)
        if (refusal !== undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, refusal)
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool "${name}".${didYouMean(name, names)}`)
      }
      const lease = caller.lease()
      const key = callKey(caller, mcpReq.id)
      const cancel = new AbortController()
      running.set(key, cancel)
      calls.total++
      try {
        const signal = AbortSignal.any([mcpReq.signal, cancel.signal])
        const run = { offered, input: params.arguments, lease, session: caller.session, signal }
        const result = await lease.work(() => runTool(run, world))
        if (result.isError) calls.errors++
        return result
      } catch (error) {
        calls.errors++
        throw error
      } finally {
        if (running.get(key) === cancel) running.delete(key)
      }
    })
    server.setNotificationHandler('notifications/cancelled', ({ params }) => {
      if (params.requestId !== undefined) running.get(callKey(caller, params.requestId))?.abort(new Error('The caller cancelled.'))
    })
    return server
  }

  const handler = createMcpHandler(({ authInfo }) => createServer(authInfo?.extra?.['caller'] as Caller), {
    maxRequestBodySize: maxBodyBytes,
  })
  const serve = toNodeHandler(handler, {
    maxRequestBodySize: maxBodyBytes,
    // A client may leave in the middle of its request; that is no error of the server.
    onerror: (error) => (error as NodeJS.ErrnoException).code === 'ECONNRESET' || world.onError(error),
  })
  return {
    calls,
    handle(request, response, caller) {
      const auth = { ...caller.auth, extra: { ...caller.auth.extra, caller } }
      void serve(Object.assign(request, { auth }), response)
    },
    close: () => handler.close(),
  }
}

/** The reason why a server does not offer a tool that its program has. */
function refusalOf(name: string, { tools }: Caller): string | undefined {
  const server = tools.find(({ server }) => name.startsWith(`${server.name}__`))?.server
  const reasons = server?.refused ?? {}
  const tool = name.slice((server?.name.length ?? 0) + 2)
  return Object.hasOwn(reasons, tool) ? reasons[tool] : undefined
}

function callKey({ auth, session }: Caller, id: string | number): string {
  return JSON.stringify([auth.extra?.['lease'], session, id])
}
