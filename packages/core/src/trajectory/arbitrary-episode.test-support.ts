import fc from 'fast-check'
import type { Episode, StopReason, Trajectory } from '../protocol/episode.ts'
import type { Turn } from '../protocol/turn.ts'

export interface TurnShape {
  /** Index of an earlier turn, or -1 for a root. */
  readonly parent: number
  readonly delivered: Turn['delivered']
  readonly added: number
  readonly completion: number
  readonly attempt: number
  readonly version: number
}

/** Turns of one trajectory. Every sampled token has an id of its own, from 1,000,000 on, so that tests can follow it. */
export function makeTrajectory(shapes: readonly TurnShape[], options: Partial<Trajectory> = {}, firstId = 1_000_000): Trajectory {
  const turns: Turn[] = []
  let next = firstId
  for (const [index, shape] of shapes.entries()) {
    const candidate = turns[shape.parent]
    // A turn only continues a turn of its own attempt.
    const parent = candidate && candidate.attempt === shape.attempt ? candidate : undefined
    const added = Array.from({ length: shape.added + 1 }, (_, i) => index * 10 + i)
    const completion = Array.from({ length: shape.completion }, () => next++)
    turns.push({
      version: 2,
      index,
      agent: options.agent ?? 'agent',
      trajectory: options.id ?? options.agent ?? 'agent',
      attempt: shape.attempt,
      parent: parent ? parent.index : null,
      branchReasons: parent ? [] : ['root'],
      promptTokenIds: Int32Array.from(parent ? [...parent.promptTokenIds, ...parent.completionTokenIds, ...added] : added),
      completionTokenIds: Int32Array.from(completion),
      rolloutLogprobs: Float32Array.from(completion, (id) => -id),
      weightVersions: [{ fromToken: 0, version: shape.version }],
      finishReason: { unified: 'stop', raw: 'stop' },
      delivered: shape.delivered,
      messagesDelta: [],
      message: { role: 'assistant', content: 'x' },
      toolCalls: [],
      sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 10, stop: [], seed: 0 },
      usage: { promptTokens: 0, completionTokens: shape.completion, cachedTokens: 0 },
      timing: { startedAt: 0, endedAt: 0 },
      capture: { tokens: 'token-in', logprobs: 'temperature' },
    })
  }
  return {
    version: 2,
    id: options.agent ?? 'agent',
    agent: 'agent',
    policy: 'local',
    trainable: true,
    startedBy: [],
    timing: null,
    turns,
    ...options,
  }
}

export function makeEpisode(trajectories: readonly Trajectory[], options: Partial<Episode> = {}): Episode {
  return {
    version: 2,
    rollout: 'rollout',
    attempt: 0,
    taskId: 'task',
    group: 'group',
    sample: 0,
    split: 'train',
    trajectories: [...trajectories],
    toolCalls: [],
    answer: 'x',
    messages: [],
    scores: {},
    reward: 1,
    stopReason: 'completed',
    timing: { startedAt: 0, endedAt: 0 },
    ...options,
  }
}

const turnShape = fc.record({
  /** Distance to the parent in turns; 0 is a root. */
  back: fc.constantFrom(1, 1, 1, 2, 2, 3, 4, 0),
  delivered: fc.constantFrom<Turn['delivered']>('delivered', 'delivered', 'delivered', 'abandoned', 'pending'),
  added: fc.nat(3),
  completion: fc.nat(4),
  attempt: fc.constantFrom(1, 1, 1, 1, 1, 1, 0),
  version: fc.nat(2),
})

const shapes = fc
  .array(turnShape, { maxLength: 9 })
  .map((turns): TurnShape[] => turns.map(({ back, ...shape }, index) => ({ ...shape, parent: back === 0 ? -1 : index - back })))

const stopReason = fc.oneof(
  { weight: 4, arbitrary: fc.constant<StopReason>('completed') },
  { weight: 1, arbitrary: fc.constantFrom<StopReason>('turn-limit', 'time-limit', 'truncated', 'cancelled', 'failed', 'no-model-call') },
)

/** Episodes of several agents, attempts, branches and endings. Attempt 1 is the current one. */
export const arbitraryEpisode = fc
  .record({
    agents: fc.array(fc.record({ shapes, trainable: fc.constantFrom(true, true, true, false) }), { minLength: 1, maxLength: 3 }),
    stopReason,
    reward: fc.option(fc.double({ min: -1, max: 1, noNaN: true }), { freq: 9 }),
  })
  .map(({ agents, stopReason, reward }) =>
    makeEpisode(
      agents.map(({ shapes, trainable }, i) => makeTrajectory(shapes, { agent: `agent-${i}`, trainable }, (i + 1) * 1_000_000)),
      { attempt: 1, stopReason, reward },
    ),
  )
