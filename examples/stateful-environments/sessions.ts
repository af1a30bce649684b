import { randomUUID } from 'node:crypto'
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server'
import { counterServer } from './counter-server.ts'

const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>()

/** Answers MCP over HTTP: a session begins with a lease and ends with it, and so does its counter. */
export async function answer(request: Request): Promise<Response> {
  const session = sessions.get(request.headers.get('mcp-session-id') ?? '')
  if (session) return await session.handleRequest(request)
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => void sessions.set(id, transport),
    onsessionclosed: (id) => void sessions.delete(id),
  })
  await counterServer({ count: 0 }).connect(transport)
  return await transport.handleRequest(request)
}
