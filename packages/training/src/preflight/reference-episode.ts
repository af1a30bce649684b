import type { AgentDeclaration, AnswerKey, Episode, Message, TrainingTask, Turn } from '@aworld-train/core'

/** The episode of an agent that gives the known answer in one turn, complete like that of a rollout. */
export function referenceEpisode(
  task: TrainingTask,
  { groundTruth }: AnswerKey,
  agents: readonly Pick<AgentDeclaration, 'name' | 'trainable'>[],
): Episode {
  const answer = typeof groundTruth === 'string' ? groundTruth : JSON.stringify(groundTruth)
  const prompt: readonly Message[] = typeof task.input === 'string' ? [{ role: 'user', content: task.input }] : task.input
  const message: Message = { role: 'assistant', content: answer }
  const agent = agents.find(({ trainable }) => trainable)?.name ?? 'agent'
  const now = Date.now()
  const timing = { startedAt: now, endedAt: now }
  const turn: Turn = {
    version: 2,
    index: 0,
    agent,
    trajectory: agent,
    attempt: 0,
    parent: null,
    branchReasons: ['root'],
    promptTokenIds: Int32Array.of(0),
    completionTokenIds: Int32Array.of(0),
    rolloutLogprobs: Float32Array.of(0),
    weightVersions: [{ fromToken: 0, version: 0 }],
    finishReason: { unified: 'stop', raw: 'stop' },
    delivered: 'delivered',
    messagesDelta: [...prompt],
    message,
    toolCalls: [],
    sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 1, stop: [], seed: 0 },
    usage: { promptTokens: 1, completionTokens: 1, cachedTokens: 0 },
    timing,
    capture: { tokens: 'token-in', logprobs: 'temperature' },
  }
  return {
    version: 2,
    rollout: 'preflight',
    attempt: 0,
    taskId: task.id,
    group: 'preflight',
    sample: 0,
    split: 'preflight',
    trajectories: [{ version: 2, id: agent, agent, policy: 'policy', trainable: true, startedBy: [], timing: null, turns: [turn] }],
    toolCalls: [],
    answer,
    messages: [...prompt, message],
    scores: {},
    reward: null,
    stopReason: 'completed',
    timing,
  }
}
