import { McpServer } from '@modelcontextprotocol/server'

export interface Counter {
  count: number
}

/** The tools over one counter. */
export function counterServer(counter: Counter): McpServer {
  const server = new McpServer({ name: 'counter', version: '1.0.0' })
  server.registerTool('next', { description: 'Counts on.' }, () => {
    counter.count += 1
    return { content: [{ type: 'text', text: String(counter.count) }] }
  })
  return server
}
