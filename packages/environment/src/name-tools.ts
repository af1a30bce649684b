import { type ToolDefinition, TrainError } from '@aworld-train/core'

export interface OfferedTools {
  readonly server: string
  readonly tools: readonly ToolDefinition[]
  readonly hidden: ReadonlySet<string>
}

/** A tool as the agent knows it. `owner` is the index of its server. */
export interface NamedTool {
  readonly definition: ToolDefinition
  readonly owner: number
  readonly tool: string
}

/**
 * Names the tools of several servers: by their own name if only one server has it, else as `server__tool`. Hidden tools are left out.
 * Throws CONFIG_INVALID if two would still have one name.
 */
export function nameTools(offers: readonly OfferedTools[]): ReadonlyMap<string, NamedTool> {
  const visible = offers.map(({ tools, hidden }) => tools.filter(({ name }) => !hidden.has(name)))
  const seen = new Map<string, number>()
  for (const tools of visible) for (const { name } of tools) seen.set(name, (seen.get(name) ?? 0) + 1)

  const named = new Map<string, NamedTool>()
  offers.forEach(({ server }, owner) => {
    for (const definition of visible[owner]!) {
      const tool = definition.name
      const name = seen.get(tool) === 1 ? tool : `${server.replace(/[^\w-]/g, '_')}__${tool}`
      if (named.has(name)) {
        throw new TrainError('CONFIG_INVALID', `Two MCP tools are named "${name}"; rename a server, or hide one with blackToolActions.`)
      }
      named.set(name, { definition: name === tool ? definition : { ...definition, name }, owner, tool })
    }
  })
  return named
}
