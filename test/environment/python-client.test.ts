// @module-tag quick
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { openOutward } from '@aworld-train/http'
import { openEnvironmentServer, toolServers } from '@aworld-train/tools'
import { openParserJail, openSandbox } from '@aworld-train/tools/sandbox'
import { beforeAll, expect, it } from 'vitest'
import { installMcpClient } from './mcp-client.ts'

const script = fileURLToPath(new URL('call-tools.py', import.meta.url))
let python: string
beforeAll(async () => {
  python = await installMcpClient()
})

it.each(['auto', 'legacy'])("Python's official client lists every tool of every server and calls it (%s)", async (mode) => {
  const outward = await openOutward({ services: [] })
  const sandbox = await openSandbox()
  const parsers = await openParserJail()
  const server = await openEnvironmentServer({ sandbox, parsers, outward })
  try {
    const running = promisify(execFile)(python, [script, server.url, server.connectionToken, mode])
    const command = "printf 'a,b\\n1,2\\n' > table.csv; (exit 3)"
    const inputs = {
      'terminal-server__execute_command': { command },
      'documents-csv-server__extract_csv_content': { file_path: 'table.csv' },
    }
    running.child.stdin!.end(JSON.stringify(inputs))
    const results = JSON.parse((await running).stdout) as Record<string, { readonly isError: boolean; readonly text: string }>
    expect(Object.keys(results)).toEqual(toolServers.flatMap(({ name, tools }) => tools.map((tool) => `${name}__${tool.name}`)))
    expect(results).toMatchObject({
      'terminal-server__execute_command': { isError: false, text: expect.stringContaining('3') },
      'terminal-server__get_command_history': { isError: false, text: expect.stringContaining('table.csv') },
      'wiki-server__search_wikipedia': { isError: true, text: expect.stringContaining('"query"') },
    })
  } finally {
    await server.close()
    await Promise.all([outward.close(), sandbox.close(), parsers.close()])
  }
})
