import type { AgentDeclaration, AgentProgram, Reward, RolloutRequest } from '@aworld-train/core'

/** A request for task `key`. */
export function rolloutRequest(key: string, overrides: Partial<RolloutRequest> = {}): RolloutRequest {
  return {
    version: 1,
    key,
    task: { version: 1, id: `task-${key}`, hash: 'hash', input: 'Go on.', data: {}, dataSource: 'test', extraInfo: {} },
    group: 'group',
    sample: 0,
    split: 'train',
    policy: 'policy',
    sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 64, stop: [], seed: 0 },
    limits: {},
    ...overrides,
  }
}

/** An agent with one server, as a program. */
export function program(run: AgentProgram['run'], agents: readonly AgentDeclaration[] = [agentWithTools('agent')]): AgentProgram {
  return { agents, run }
}

export function agentWithTools(name: string): AgentDeclaration {
  return { name, trainable: true, mcpConfig: { mcpServers: { echo: { command: 'echo' } } } }
}

/** Scores 1 where the answer is `groundTruth`. */
export function exactReward(): Reward {
  return {
    name: 'exact',
    score: async ({ episode, answer }) => {
      const reward = episode.answer === answer.groundTruth ? 1 : 0
      return { reward, scores: { exact: reward } }
    },
    close: async () => {},
  }
}
