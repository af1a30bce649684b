// @module-tag quick
import { openSandbox } from '@aworld-train/sandbox'
import { afterAll } from 'vitest'
import { codeServer } from '../../packages/tool-servers/src/servers/code/server.ts'
import { downloadServer } from '../../packages/tool-servers/src/servers/download/server.ts'
import { terminalServer } from '../../packages/tool-servers/src/servers/terminal/server.ts'
import { describeToolServer } from '../../packages/tool-servers/src/testing/describe-tool-server.ts'
import { openStandIn } from '../../packages/tool-servers/src/testing/stand-in.ts'
import { openToolContext } from '../../packages/tool-servers/src/testing/tool-context.ts'
import { openWebContext } from '../../packages/tool-servers/src/testing/web-context.ts'

// Servers that run commands or write files, in the jail that they are made for.
const inJail = () => openSandbox({ tier: 'bubblewrap' })

describeToolServer({
  server: terminalServer,
  examples: { execute_command: { command: 'echo hello; no-such-program' }, get_command_history: {}, get_terminal_capabilities: {} },
  slow: { tool: 'execute_command', input: { command: 'while true; do :; done' } },
  open: (overrides) => openToolContext(overrides, inJail),
})

describeToolServer({
  server: codeServer,
  examples: {
    generate_python_code: { task_description: 'Print 1.' },
    run_code: { language: 'python', code: 'print(1)\n1 / 0' },
    get_reasoning_capabilities: {},
  },
  slow: { tool: 'run_code', input: { language: 'javascript', code: 'while (true);' } },
  open: (overrides) => openToolContext({ model: async () => ({ name: 'writer', complete: async () => 'print(1)' }), ...overrides }, inJail),
})

const files = await openStandIn(({ url }) =>
  url.pathname === '/data.bin' ? { body: Buffer.alloc(100_000, 7) } : { status: 404, body: 'gone' },
)
afterAll(() => files.close())

describeToolServer({
  server: downloadServer,
  examples: { download_file: { url: 'https://files.test/data.bin', output_file_path: 'data.bin' }, get_download_capabilities: {} },
  open: (overrides) => openWebContext({ web: { mirrors: { 'https://files.test': files.url } } }, overrides, inJail),
})
