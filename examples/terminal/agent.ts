import { Agent, getAgentToolEnvAndServers } from 'aworld-train'

const { config, servers } = getAgentToolEnvAndServers({ directory: import.meta.dirname, servers: ['terminal-server'] })

/** The one tool that the agent sees. */
export const execute = 'terminal-server__execute_command'

/** The agent in training, whose tool is a terminal in the workspace of its rollout: `aworld-train env start` serves it. */
export const agent = new Agent({
  name: 'clerk',
  systemPrompt: 'You work in a terminal.',
  mcpConfig: config,
  mcpServers: servers,
  blackToolActions: { 'aworld-mcp': ['terminal-server__get_command_history', 'terminal-server__get_terminal_capabilities'] },
})
