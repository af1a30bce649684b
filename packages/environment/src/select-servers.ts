import { type McpServerConfig, type ToolSelection, TrainError } from '@aworld-train/core'
import type { ResolvedOptions } from './environment-options.ts'
import { type ServerDefinition, toServerDefinition } from './server-definition.ts'
import { suggestion } from './suggestion.ts'

/** A server that a rollout uses, and its tools that the agent must not see. */
export interface SelectedServer {
  readonly definition: ServerDefinition
  readonly hidden: ReadonlySet<string>
}

type Selection = Pick<ToolSelection, 'mcpConfig' | 'mcpServers' | 'hiddenTools'>

/**
 * Selects the servers of a lease in the order of the configuration, without the disabled ones. A name in `mcpServers` is a key of the
 * configuration, or a tool server that an `MCP_SERVERS` header mounts. Throws CONFIG_INVALID for an unknown name.
 */
export function selectServers({ mcpConfig, mcpServers, hiddenTools }: Selection, options: ResolvedOptions): SelectedServer[] {
  const configs = mcpConfig?.mcpServers
  if (typeof configs !== 'object' || configs === null || Array.isArray(configs)) {
    throw new TrainError('CONFIG_INVALID', 'The MCP configuration has no "mcpServers"; add { "mcpServers": { name: { command or url } } }.')
  }
  const names = Object.keys(configs)
  const owners = new Map(names.flatMap((name) => mountedServers(configs[name]).map((mounted) => [mounted, name])))
  const ownerOf = (name: string, where: string): string => {
    const owner = Object.hasOwn(configs, name) ? name : owners.get(name)
    if (owner !== undefined) return owner
    throw new TrainError('CONFIG_INVALID', `${where} names the MCP server "${name}", which is not configured${suggestion(name, names)}`)
  }

  const selectedNames = new Set(mcpServers?.map((name) => ownerOf(name, 'mcpServers')) ?? names)
  const hidden = new Map<string, Set<string>>()
  for (const [name, tools] of Object.entries(hiddenTools ?? {})) {
    const owner = ownerOf(name, 'blackToolActions')
    const set = hidden.get(owner) ?? new Set()
    for (const tool of tools) set.add(tool).add(`${name}__${tool}`)
    hidden.set(owner, set)
  }
  return names
    .filter((name) => selectedNames.has(name) && configs[name]?.disabled !== true)
    .map((name) => ({
      definition: toServerDefinition(name, narrowMounted(configs[name]!, mcpServers), options),
      hidden: hidden.get(name) ?? new Set(),
    }))
}

function mountedServers(config: McpServerConfig | undefined): string[] {
  const header = config?.headers?.['MCP_SERVERS']
  return typeof header === 'string'
    ? header
        .split(',')
        .map((name) => name.trim())
        .filter(Boolean)
    : []
}

/** Asks a server that mounts others for the selected ones only. */
function narrowMounted(config: McpServerConfig, selected: readonly string[] | undefined): McpServerConfig {
  const chosen = mountedServers(config).filter((name) => selected?.includes(name))
  return chosen.length ? { ...config, headers: { ...config.headers, MCP_SERVERS: chosen.join(',') } } : config
}
