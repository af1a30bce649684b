// A tool server whose one tool runs commands of bash, wherever the server itself runs.
import { execFile } from 'node:child_process'
import { McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { z } from 'zod'

const run = (command: string) =>
  new Promise<string>((resolve) =>
    execFile('bash', ['-c', command], { maxBuffer: 2 ** 20 }, (_error, stdout, stderr) => resolve(stdout + stderr)),
  )

// What stands in the directory before any call.
if (process.argv[2]) await run(process.argv[2])

serveStdio(() => {
  const server = new McpServer({ name: 'shell', version: '1.0.0' })
  server.registerTool('run', { description: 'Runs a command.', inputSchema: z.object({ command: z.string() }) }, async ({ command }) => ({
    content: [{ type: 'text', text: await run(command) }],
  }))
  return server
})
