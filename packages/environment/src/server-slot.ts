import { type ToolResult, TrainError, toTrainError } from '@aworld-train/core'
import type { ServerConnection } from './server-connection.ts'
import type { ServerDefinition } from './server-definition.ts'
import { type ServerPool, toolsChangedError } from './server-pool.ts'

/** One lease's view of a server. */
export interface ServerSlot {
  readonly definition: ServerDefinition
  /** Connection at the beginning of the lease, with the tools that the server offered then. */
  readonly connection: ServerConnection
  call(tool: string, input: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<ToolResult>
  close(): Promise<void>
}

/** A slot on a stateless server. A lost process is started again and costs only the calls under way. */
export async function sharedSlot(pool: ServerPool, definition: ServerDefinition, signal: AbortSignal): Promise<ServerSlot> {
  const first = await pool.shared(definition, signal)
  return {
    definition,
    connection: first,
    async call(tool, input, callSignal) {
      const connection = first.alive ? first : await pool.shared(definition, callSignal)
      if (connection.toolsChanged) throw toolsChangedError(definition.name)
      try {
        return await connection.call(tool, input, callSignal)
      } catch (error) {
        // One slow call must not cost the others their server, but a server that answers nothing must go.
        if (isCode(error, 'TOOL_TIMEOUT') && connection.alive && !(await connection.answers())) await pool.discard(connection)
        if (isCode(error, 'TOOL_SERVER_DIED')) await pool.discard(connection)
        throw error
      }
    },
    close: async () => {},
  }
}

/**
 * A slot on a server of the lease's own. If the server dies, or hangs and is ended, its state is gone: `onLost` is called, and
 * no other server takes its place.
 */
export function ownSlot(pool: ServerPool, connection: ServerConnection, onLost: (error: TrainError) => void): ServerSlot {
  const { definition } = connection
  let closed = false

  const lose = async (error: TrainError): Promise<TrainError> => {
    if (closed) return error
    onLost(error)
    await pool.discard(connection)
    return error
  }
  const died = (what: string, tool: string, cause?: unknown) =>
    new TrainError('TOOL_SERVER_DIED', `The MCP server "${definition.name}" ${what}.`, {
      cause,
      details: { server: definition.name, tool },
    })
  return {
    definition,
    connection,
    async call(tool, input, signal) {
      if (!connection.alive) throw await lose(died('ended between two calls', tool))
      if (connection.toolsChanged) throw toolsChangedError(definition.name)
      try {
        return await connection.call(tool, input, signal)
      } catch (error) {
        const loseSilent = async (how: string) => {
          if (await connection.answers()) return error
          return await lose(died(`answers nothing since a call of "${tool}" ${how}, and was ended`, tool, error))
        }
        if (signal.aborted) void loseSilent('was cancelled')
        else if (isCode(error, 'TOOL_TIMEOUT')) throw await loseSilent(`had no result in ${definition.callTimeoutMs / 1000} s`)
        else await lose(toTrainError(error, 'TOOL_SERVER_DIED'))
        throw error
      }
    },
    async close() {
      closed = true
      await pool.retire(connection)
    },
  }
}

const isCode = (error: unknown, code: TrainError['code']) => error instanceof TrainError && error.code === code
