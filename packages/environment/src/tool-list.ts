import { isRecord } from '@aworld-train/core'
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'

/**
 * Repairs the lists of tools that a transport receives, because the SDK refuses a whole list for one tool. Parameters described as nothing
 * become none. Tools that need a task are left out, because calls here are no tasks.
 */
export function mendToolLists<Kind extends Transport>(transport: Kind): Kind {
  let receive: Transport['onmessage']
  return Object.defineProperty(transport, 'onmessage', {
    configurable: true,
    get: () => receive,
    set(value: Transport['onmessage']) {
      receive = value && ((message, extra) => value(mended(message) as typeof message, extra))
    },
  })
}

function mended(message: JSONRPCMessage): JSONRPCMessage {
  const result = 'result' in message ? message.result : undefined
  if (!isRecord(result) || !Array.isArray(result['tools'])) return message
  const tools = (result['tools'] as unknown[]).filter((tool) => !isForTasks(tool)).map((tool) => (isRecord(tool) ? mendedTool(tool) : tool))
  return { ...message, result: { ...result, tools } } as JSONRPCMessage
}

function isForTasks(tool: unknown): boolean {
  const execution = isRecord(tool) ? tool['execution'] : undefined
  return isRecord(execution) && execution['taskSupport'] === 'required'
}

function mendedTool({ outputSchema, ...tool }: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const output = isRecord(outputSchema) && outputSchema['type'] === 'object' ? { outputSchema } : {}
  return { ...tool, inputSchema: parametersOf(tool['inputSchema']), ...output }
}

function parametersOf(schema: unknown): Record<string, unknown> {
  if (!isRecord(schema)) return { type: 'object' }
  const { type } = schema
  if (type === 'object') return schema
  return type === undefined || (Array.isArray(type) && type.includes('object')) ? { ...schema, type: 'object' } : { type: 'object' }
}
