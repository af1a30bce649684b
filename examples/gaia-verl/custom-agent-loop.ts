import { Agent, AgentConfig, AworldAgentLoop, getAgentToolEnvAndServers } from 'aworld-train'
import { systemPrompt } from './prompt.ts'

/** The agent of AWorld Train's guide: its model is the one in training, its tools are those of the GAIA environment. */
export class GaiaAgentLoop extends AworldAgentLoop {
  async buildAgents() {
    // MCP_SERVER_URL and MCP_SERVER_TOKEN lead to the environment; without them it is http://localhost:8000/mcp.
    const { config, servers } = getAgentToolEnvAndServers()
    return new Agent({
      conf: new AgentConfig({
        llmBaseUrl: await this.getLlmServerAddress(),
        llmModelName: await this.getLlmServerModelName(),
        llmApiKey: 'dummy',
      }),
      name: 'gaia_super_agent',
      systemPrompt,
      mcpConfig: config,
      mcpServers: servers,
    })
  }
}
