import { Agent, AgentConfig, AworldAgentLoop } from 'aworld-train'

/** A loop over the small parity game, so that a moved project trains in seconds. */
export class CustomAgentLoop extends AworldAgentLoop {
  async buildAgents() {
    return new Agent({
      conf: new AgentConfig({
        llmBaseUrl: await this.getLlmServerAddress(),
        llmModelName: await this.getLlmServerModelName(),
        llmApiKey: 'dummy',
        topK: 80,
      }),
      name: 'parity_agent',
      systemPrompt: 'Answer yes or no.',
    })
  }
}
