import { didYouMean, TrainError } from '@aworld-train/core'
import type { Tool as ToolListing } from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { ServerTool, ToolServer } from '../tool-server.ts'

/** A tool, under the name by which it is called: `server__tool`. */
export interface OfferedTool {
  readonly server: ToolServer
  readonly tool: ServerTool
  readonly listing: ToolListing
}

/** The servers that an environment offers. */
export interface Offer {
  readonly servers: readonly ToolServer[]
  /** Resolves aliases in names of servers. Throws LEASE_INVALID for an unknown server. */
  resolve(names: readonly string[]): readonly string[]
  /** The tools of these servers, or of all. They are in the order of the table, whatever the order of the names. */
  tools(names: readonly string[] | undefined): readonly OfferedTool[]
}

/** Creates an offer. Throws CONFIG_INVALID if two servers have one name. */
export function createOffer(servers: readonly ToolServer[], aliases: Readonly<Record<string, string>>): Offer {
  const offered = servers.flatMap((server) => server.tools.map((tool) => offer(server, tool)))
  const names = servers.map(({ name }) => name)
  const present = new Set(names)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw new TrainError('CONFIG_INVALID', `Two tool servers are named "${twice}"; give one of them another name.`)
  return {
    servers,
    resolve: (serverNames) =>
      serverNames.map((name) => {
        const resolved = Object.hasOwn(aliases, name) ? aliases[name]! : name
        if (present.has(resolved)) return resolved
        const message = `There is no tool server "${name.slice(0, 100)}".${didYouMean(name.slice(0, 100), names)} There are ${names.join(', ')}.`
        throw new TrainError('LEASE_INVALID', message)
      }),
    tools: (serverNames) => (serverNames === undefined ? offered : offered.filter(({ server }) => serverNames.includes(server.name))),
  }
}

function offer(server: ToolServer, tool: ServerTool): OfferedTool {
  const inputSchema = z.toJSONSchema(tool.input, { io: 'input' }) as ToolListing['inputSchema']
  const outputSchema = z.toJSONSchema(tool.output) as NonNullable<ToolListing['outputSchema']>
  return { server, tool, listing: { name: `${server.name}__${tool.name}`, description: tool.description, inputSchema, outputSchema } }
}
