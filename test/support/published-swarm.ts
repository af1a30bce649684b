import { Agent, AgentConfig, AworldAgentLoop, Swarm } from 'aworld-train'

/** An OpenAI-compatible service, with its address, model and key from the environment, such as `PLAN_LLM_BASE_URL`. */
function service(name: string): AgentConfig {
  const variable = (key: string) => process.env[`${name}_LLM_${key}`]
  return new AgentConfig({ llm_base_url: variable('BASE_URL'), llm_model_name: variable('MODEL_NAME'), llm_api_key: variable('API_KEY') })
}

/** The swarm of AWorld Train's README: one agent in training, three with services of their own. */
export class SwarmLoop extends AworldAgentLoop {
  async buildAgents() {
    const agentToBeTrain = new Agent({
      name: 'agent_to_be_train',
      conf: new AgentConfig({
        llm_base_url: await this.getLlmServerAddress(),
        llm_model_name: await this.getLlmServerModelName(),
      }),
    })
    const planAgent = new Agent({ name: 'plan_agent', conf: service('PLAN') })
    const exeAgent = new Agent({ name: 'exe_agent', conf: service('EXE') })
    const sumAgent = new Agent({ name: 'sum_agent', conf: service('SUM') })
    return new Swarm(agentToBeTrain, planAgent, exeAgent, sumAgent)
  }
}

/** The same swarm with the provider that AWorld calls `verl`, no names, and nothing to wait for. */
export class NamelessSwarmLoop extends AworldAgentLoop {
  buildAgents() {
    return new Swarm(
      new Agent({ conf: new AgentConfig({ llm_provider: 'verl', top_k: 80 }) }),
      new Agent({ conf: service('PLAN') }),
      new Agent({ conf: service('EXE') }),
      new Agent({ conf: service('SUM') }),
    )
  }
}
