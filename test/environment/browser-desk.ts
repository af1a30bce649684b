import type { LeaseOpen } from '@aworld-train/core'
import { openSandbox } from '@aworld-train/tools/sandbox'
import type { Client } from '@modelcontextprotocol/client'
import { expect } from 'vitest'
import type { EnvironmentServerOptions } from '../../packages/tools/src/host/open-environment-server.ts'
import { browserFolders } from '../../packages/tools/src/servers/browser/browser-folders.ts'
import { toolServers } from '../../packages/tools/src/table.ts'
import { callTool, connectClient, openLease, openTestServer, request } from '../../packages/tools/src/testing/open-test-server.ts'
import { unreapedBelowUs } from './processes.ts'

/** A browser starts in two seconds. This allows for a machine under heavy load. */
export const timeout = 240_000

/** A lease with a browser, a terminal and pages. */
export interface Desk {
  readonly client: Client
  /** Calls a tool of the browser. */
  call(tool: string, input?: Record<string, unknown>): Promise<string>
  /** Runs a command in the terminal of the lease. */
  run(command: string): Promise<string>
}

export interface Desks {
  /** Opens a lease whose workspace serves `pages` at port 8000 of its own loopback, and closes it after `work`. */
  with(
    rollout: string,
    pages: Readonly<Record<string, string>>,
    work: (desk: Desk) => Promise<unknown>,
    changes?: Partial<LeaseOpen>,
  ): Promise<void>
  /** Ends the server. Nothing may be left of it. */
  close(): Promise<void>
}

/** The command that waits for a server on the loopback of its workspace. */
export const untilServed = (port: number) => `until (echo > /dev/tcp/127.0.0.1/${port}) 2>/dev/null; do sleep 0.1; done`

export async function openDesks(options: Partial<EnvironmentServerOptions> = {}): Promise<Desks> {
  const sandbox = await openSandbox({ tier: 'bubblewrap', readable: browserFolders() })
  const server = await openTestServer({ sandbox, servers: toolServers, ...options })
  return {
    async with(rollout, pages, work, changes) {
      const { id, token } = await openLease(server, { rollout, ...changes })
      for (const [name, text] of Object.entries(pages))
        await request(server, 'PUT', `/v1/leases/${id}/files/site/${name}`, Buffer.from(text))
      const client = await connectClient(server.url, { token })
      const run = (command: string) => callTool(client, 'terminal-server__execute_command', { command, output_format: 'text' })
      try {
        await run(`python3 -m http.server 8000 --bind 127.0.0.1 --directory site >/dev/null 2>&1 & ${untilServed(8000)}`)
        await work({ client, run, call: (tool, input = {}) => callTool(client, `browser-server__${tool}`, input) })
      } finally {
        await client.close()
        await request(server, 'DELETE', `/v1/leases/${id}`)
      }
    },
    async close() {
      await server.close()
      await sandbox.close()
      expect(unreapedBelowUs()).toEqual([])
    },
  }
}
