import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Episode, RolloutRequest, Turn } from '@aworld-train/core'

const sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 64, stop: [], seed: 0 }

/** A folder of its own below the system's temporary one, removed by `await using`. */
export async function temporaryFolder(): Promise<{ readonly path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), 'aworld-train-store-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}

export function runRequest(key: string, overrides: Partial<RolloutRequest> = {}): RolloutRequest {
  return {
    version: 1,
    key,
    task: { version: 1, id: `task-${key}`, hash: 'hash', input: 'Go on.', data: {}, dataSource: 'test', extraInfo: {} },
    group: 'group',
    sample: 0,
    split: 'train',
    policy: 'policy',
    sampling,
    limits: {},
    ...overrides,
  }
}

/** Turns that extend one another; token values follow from `seed`. */
export function turnChain(attempt: number, count: number, seed = 1, agent = 'agent'): Turn[] {
  const turns: Turn[] = []
  for (let index = 0; index < count; index++) {
    const parent = turns.at(-1)
    const before = parent ? [...parent.promptTokenIds, ...parent.completionTokenIds] : []
    const added = Array.from({ length: parent ? 3 : 40 }, (_, position) => seed * 1000 + index * 10 + position)
    turns.push(
      turnOf({ attempt, agent, index, parent: parent ? index - 1 : null, prompt: [...before, ...added], completion: [seed, index, 7] }),
    )
  }
  return turns
}

interface TurnParts {
  readonly attempt?: number
  readonly agent?: string
  readonly index: number
  readonly parent: number | null
  readonly prompt: readonly number[]
  readonly completion: readonly number[]
}

export function turnOf({ attempt = 0, agent = 'agent', index, parent, prompt, completion }: TurnParts): Turn {
  return {
    version: 2,
    index,
    agent,
    trajectory: agent,
    attempt,
    parent,
    branchReasons: parent === null ? ['root'] : [],
    promptTokenIds: Int32Array.from(prompt),
    completionTokenIds: Int32Array.from(completion),
    rolloutLogprobs: Float32Array.from(completion, (_, position) => -0.5 - position),
    weightVersions: [{ fromToken: 0, version: 3 }],
    finishReason: { unified: 'stop', raw: 'stop' },
    delivered: 'pending',
    messagesDelta: [{ role: 'user', content: 'Grüße 👋' }],
    message: { role: 'assistant', content: 'yes' },
    toolCalls: [],
    sampling,
    usage: { promptTokens: prompt.length, completionTokens: completion.length, cachedTokens: 0 },
    timing: { startedAt: 1, endedAt: 2 },
    capture: { tokens: 'token-in', logprobs: 'temperature' },
  }
}

export function episodeOf(request: RolloutRequest, attempt: number, turns: readonly Turn[], overrides: Partial<Episode> = {}): Episode {
  const agents = [...new Set(turns.map(({ agent }) => agent))]
  return {
    version: 2,
    rollout: request.key,
    attempt,
    taskId: request.task.id,
    group: request.group,
    sample: request.sample,
    split: request.split,
    trajectories: agents.map((agent) => ({
      version: 2,
      id: agent,
      agent,
      policy: request.policy,
      trainable: true,
      startedBy: [],
      timing: { startedAt: 1, endedAt: 2 },
      turns: turns.filter((turn) => turn.agent === agent),
    })),
    toolCalls: [],
    answer: 'yes',
    messages: [{ role: 'user', content: 'Go on.' }],
    scores: { exact: 1 },
    reward: 1,
    stopReason: 'completed',
    timing: { startedAt: 1, endedAt: 3 },
    ...overrides,
  }
}
