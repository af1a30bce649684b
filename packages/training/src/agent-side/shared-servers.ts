import { type AgentDeclaration, type AgentProgram, stableStringify } from '@aworld-train/core'

/** Names of the servers of an agent that keep a state, each with its definition as text. */
function statefulServers({ mcpConfig, mcpServers }: AgentDeclaration): ReadonlyMap<string, string> {
  const servers = Object.entries(mcpConfig?.mcpServers ?? {}).filter(
    ([name, { disabled, stateless }]) => (mcpServers?.includes(name) ?? true) && !disabled && !stateless,
  )
  return new Map(servers.map(([name, server]) => [name, stableStringify(server)]))
}

/** A warning where agents that may work at once share servers that keep a state; otherwise `null`. */
export function sharedServersWarning({ agents, sideBySide = [] }: AgentProgram): string | null {
  const byName = new Map(agents.map((agent) => [agent.name, statefulServers(agent)]))
  const shared = sideBySide.flatMap(([one, other]) => {
    const servers = [...(byName.get(one) ?? [])].filter(([name, definition]) => byName.get(other)?.get(name) === definition)
    const who = one === other ? `"${one}" with itself` : `"${one}" with "${other}"`
    return servers.map(([name]) => `${who} the server "${name}"`)
  })
  if (shared.length === 0) return null
  return `Agents that may work at once share servers that keep a state: ${shared.join(', ')}. What one does there, the other finds. Set "stateless": true for a server that keeps nothing between calls, or give each agent one of its own.`
}
