import { Agent, AgentConfig, AworldAgentLoop, Swarm } from 'aworld-train'

/** Two agents of one policy, one after the other: a rollout has two conversations, and so two rows. */
export class PairAgentLoop extends AworldAgentLoop {
  async buildAgents(): Promise<Swarm> {
    const conf = new AgentConfig({
      llmBaseUrl: await this.getLlmServerAddress(),
      llmModelName: await this.getLlmServerModelName(),
      llmApiKey: 'dummy',
    })
    return new Swarm(new Agent({ name: 'asker', systemPrompt: 'Ask.', conf }), new Agent({ name: 'solver', systemPrompt: 'Solve.', conf }))
  }
}
