import type { McpConfig } from '@aworld-train/core'
import { findConnection } from './connection-file.ts'

/** The tool servers of the AWorld GAIA environment, in its documented order. */
export const aworldToolServers: readonly string[] = [
  'readweb-server',
  'browseruse-server',
  'documents-csv-server',
  'documents-docx-server',
  'documents-pptx-server',
  'documents-pdf-server',
  'documents-txt-server',
  'download-server',
  'intelligence-code-server',
  'intelligence-think-server',
  'intelligence-guard-server',
  'media-audio-server',
  'media-image-server',
  'media-video-server',
  'parxiv-server',
  'terminal-server',
  'wayback-server',
  'wiki-server',
  'googlesearch-server',
]

export interface AgentToolEnvOptions {
  /** Address of the MCP service. Default: `MCP_SERVER_URL`, else that of `aworld-train env start`, else `http://localhost:8000/mcp`. */
  readonly url?: string | undefined
  /** Bearer token. Default: `MCP_SERVER_TOKEN` if set, else that of `aworld-train env start` if its address is used. */
  readonly token?: string | undefined
  /** Tool servers to ask the service for. Default: all 19. */
  readonly servers?: readonly string[] | undefined
  /** Whether each lease has a desktop that people can watch. Default: no. */
  readonly desktop?: boolean | undefined
  /** Whether commands of each lease reach the public web. Default: no. */
  readonly net?: boolean | undefined
  /** Variables to read from. Default: `process.env`. */
  readonly variables?: Readonly<Record<string, string | undefined>> | undefined
  /** Folder of the project. Its environment is looked for there and in the folders above. Default: the process's own. */
  readonly directory?: string | undefined
}

/** Configuration and tool servers, by name or as a pair: `const [config, servers] = getAgentToolEnvAndServers()`. */
export interface AgentToolEnv extends Iterable<McpConfig | string[]> {
  readonly config: McpConfig
  readonly servers: string[]
  [Symbol.iterator](): Generator<McpConfig | string[], void, undefined>
}

/** Configuration for AWorld's tool environment: one streamable-HTTP server named `aworld-mcp` that mounts the named tool servers. */
export function getAgentToolEnvAndServers(options: AgentToolEnvOptions = {}): AgentToolEnv {
  const variables = options.variables ?? process.env
  const named = options.url ?? (variables['MCP_SERVER_URL'] || undefined)
  const connection = findConnection(options.directory ?? process.cwd())
  const url = named ?? connection?.url ?? 'http://localhost:8000/mcp'
  const token =
    options.token ?? (variables['MCP_SERVER_TOKEN'] || (connection && isSameServer(url, connection.url) ? connection.token : undefined))
  const servers = [...(options.servers ?? aworldToolServers)]
  const headers: Record<string, string> = { MCP_SERVERS: servers.join(',') }
  if (token) headers['Authorization'] = `Bearer ${token}`
  const config: McpConfig = {
    mcpServers: {
      'aworld-mcp': {
        type: 'streamable-http',
        url,
        headers,
        timeout: 600,
        sse_read_timeout: 600,
        client_session_timeout_seconds: 600,
        ...(options.desktop === true && { desktop: true }),
        ...(options.net === true && { net: true }),
      },
    },
  }
  return {
    config,
    servers,
    *[Symbol.iterator]() {
      yield config
      yield servers
    },
  }
}

/** Whether two addresses belong to one server. Loopback has several names. */
function isSameServer(left: string, right: string): boolean {
  if (!URL.canParse(left)) return false
  const [one, other] = [new URL(left), new URL(right)]
  const host = ({ hostname }: URL) => (hostname === 'localhost' || hostname === '[::1]' ? '127.0.0.1' : hostname)
  return host(one) === host(other) && one.port === other.port && one.protocol === other.protocol
}
