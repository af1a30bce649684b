// An MCP server on standard input and output whose one tool takes as long as it is asked to.
import { setTimeout as sleep } from 'node:timers/promises'
import { Server } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'

const text = 'Iron is a metal, and so is lead. '.repeat(31)
const step = {
  name: 'step',
  description: 'Goes on.',
  inputSchema: { type: 'object' as const, properties: { milliseconds: { type: 'number' } }, required: ['milliseconds'] },
}

serveStdio(() => {
  const server = new Server({ name: 'steps', version: '1.0.0' }, { capabilities: { tools: {} } })
  server.setRequestHandler('tools/list', () => ({ tools: [step] }))
  server.setRequestHandler('tools/call', async ({ params }) => {
    await sleep(Number(params.arguments?.['milliseconds'] ?? 0))
    return { content: [{ type: 'text', text }] }
  })
  return server
})
