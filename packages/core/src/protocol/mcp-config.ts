/** One MCP server, with the keys of AWorld's and Claude Desktop's `mcpServers`. */
export interface McpServerConfig {
  readonly type?: 'stdio' | 'streamable-http' | 'sse' | undefined
  readonly command?: string | undefined
  readonly args?: readonly string[] | undefined
  readonly env?: Readonly<Record<string, string>> | undefined
  readonly cwd?: string | undefined
  readonly url?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly disabled?: boolean | undefined
  /** Seconds for one call. */
  readonly timeout?: number | undefined
  readonly sse_read_timeout?: number | undefined
  readonly client_session_timeout_seconds?: number | undefined
  /** Whether it keeps nothing between calls. One process may then serve several rollouts. */
  readonly stateless?: boolean | undefined
  /** Whether a lease of an environment server has a desktop that people can watch. */
  readonly desktop?: boolean | undefined
  /** Runs a stdio server in a jail of bubblewrap. In addition to its own program, it can read the files and folders in `read`. */
  readonly sandbox?: boolean | { readonly read?: readonly string[] | undefined } | undefined
  /** Whether commands in the workspaces of an environment server reach the public web. Default: false. */
  readonly net?: boolean | undefined
}

export interface McpConfig {
  readonly mcpServers: Readonly<Record<string, McpServerConfig>>
}
