import { Agent, AgentConfig, AworldAgentLoop, Swarm } from 'aworld-train'

/** The published swarm: one agent in training, and three with models of their own. */
export class SwarmAgentLoop extends AworldAgentLoop {
  override buildAgents(): Swarm {
    const frozen = (name: string) =>
      new Agent({
        name,
        conf: new AgentConfig({
          llmBaseUrl: process.env['SWARM_LLM_BASE_URL'] as string,
          llmModelName: 'helper',
          llmApiKey: 'helper-key',
        }),
      })
    const trained = new Agent({
      name: 'agent_to_be_train',
      conf: new AgentConfig({ llmBaseUrl: this.getLlmServerAddress(), llmModelName: this.getLlmServerModelName() }),
    })
    return new Swarm(trained, frozen('plan_agent'), frozen('exe_agent'), frozen('sum_agent'))
  }
}
