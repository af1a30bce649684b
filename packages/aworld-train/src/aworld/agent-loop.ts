import type { Agent, Swarm } from '@aworld-train/agent'

/** Stands for the policy's address, which differs from rollout to rollout; no name server resolves it. */
export const policyAddress = 'http://policy.invalid/v1'

/**
 * AWorld's way to name an agent in `agent.yaml`: extend it and build the agents. An agent that uses
 * `getLlmServerAddress()` is the one in training; all others are frozen.
 */
export abstract class AworldAgentLoop {
  /** Called once for a run; what it returns takes part in every rollout. */
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
