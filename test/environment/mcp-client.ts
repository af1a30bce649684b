import { fileURLToPath } from 'node:url'
import { pythonEnvironment } from '../support/python-environment.ts'

/** An interpreter that has Python's official client of MCP: Debian's, which every user of the machine may run. */
export const installMcpClient = () =>
  pythonEnvironment({
    name: 'mcp-client',
    requirements: fileURLToPath(new URL('requirements.txt', import.meta.url)),
    python: '/usr/bin/python3',
  })
