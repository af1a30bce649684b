import type { ToolScope, ToolServer } from '../tool-server.ts'

const absent = (name: string, scope: ToolScope, description: string): ToolServer => ({
  name,
  scope,
  description,
  needs: [{ anyOf: [name], remedy: `This version has no ${name}; configure an MCP server of your own for it.` }],
  tools: [],
})

/** Servers that AWorld's environment has and this one lacks. An agent that asks for them beside others gets no tools of theirs. */
export const absentServers: readonly ToolServer[] = [absent('browser-server', 'web', 'Operates a browser.')]
