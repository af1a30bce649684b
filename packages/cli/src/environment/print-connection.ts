import type { EnvironmentStatus } from '@aworld-train/core'
import type { EnvironmentConnection } from '@aworld-train/environment'

/** Seconds that a call may take, as in AWorld's own output. */
const timeout = 6000

/** The output of AWorld's start script: a server with the name `virtualpc-mcp-server`, ready to paste into an MCP configuration. */
export function connectionText({ url, token }: EnvironmentConnection, servers: EnvironmentStatus['servers']): string {
  const server = {
    type: 'streamable-http',
    url,
    headers: { Authorization: `Bearer ${token}`, MCP_SERVERS: servers.map(({ name }) => name).join(',') },
    timeout,
    sse_read_timeout: timeout,
    client_session_timeout_seconds: timeout,
  }
  return `Start mcp server success.\n${JSON.stringify({ 'virtualpc-mcp-server': server }, null, 4)}\n`
}
