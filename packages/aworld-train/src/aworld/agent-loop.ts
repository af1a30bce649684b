import type { Agent, Swarm } from '@aworld-train/agent'

/** Placeholder for the policy's address, which differs between rollouts. No name server resolves it. */
export const policyAddress = 'http://policy.invalid/v1'

/**
 * AWorld's way to name an agent in `agent.yaml`: a class that extends this one and builds the agents. An agent that uses
 * `getLlmServerAddress()` is in training; all others are frozen.
 */
export abstract class AworldAgentLoop {
  /** Called once for a run. The returned agents take part in every rollout. */
  abstract buildAgents(): Agent | Swarm | Promise<Agent | Swarm>

  /** Address of the policy in training, with or without `await`. */
  getLlmServerAddress(_name?: string): string {
    return policyAddress
  }

  /** Name of the policy, with or without `await`. */
  getLlmServerModelName(): string {
    return 'policy'
  }
}
