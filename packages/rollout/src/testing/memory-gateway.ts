import { setTimeout as sleep } from 'node:timers/promises'
import {
  type GenerateResult,
  type Message,
  type PolicyEndpoint,
  type PolicyGateway,
  type PolicySession,
  type SessionRequest,
  type ToolCall,
  TrainError,
  type Trajectory,
  type Turn,
} from '@aworld-train/core'

/** The policy's answer to one call. */
export interface Saying {
  readonly content?: string | undefined
  readonly toolCalls?: readonly ToolCall[] | undefined
  readonly delayMs?: number | undefined
  /** Milliseconds that the call is held back for load before that. */
  readonly heldMs?: number | undefined
  /** The completion is cut short. */
  readonly cut?: boolean | undefined
  /** The engine fails with this. */
  readonly error?: Error | undefined
  /** Samples the completion instead of `content`. */
  readonly generate?:
    | ((promptTokenIds: Int32Array, agent: string, turn: number, signal: AbortSignal) => Promise<GenerateResult>)
    | undefined
}

export interface MemoryGateway extends PolicyGateway {
  /** Makes a model call as an OpenAI client does, without a socket. */
  call(endpoint: PolicyEndpoint, messages: readonly Message[], signal?: AbortSignal): Promise<Message>
  openSessions(): number
}

interface Session {
  readonly request: SessionRequest
  readonly turns: Map<string, Turn[]>
  failure: Error | null
  readonly ended: AbortController
}

/** A PolicyGateway whose URLs lead to a function. `say` gets the messages, the session and the index of the call in it. */
export function memoryGateway(say: (messages: readonly Message[], session: SessionRequest, call: number) => Saying): MemoryGateway {
  const sessions = new Map<string, { session: Session; agent: string }>()
  const listeners = new Set<(paused: boolean) => void>()
  let paused: PromiseWithResolvers<void> | null = null
  let calls = 0
  let failures = 0
  let opened = 0

  async function record(
    { request, turns }: Session,
    agent: string,
    messages: readonly Message[],
    saying: Saying,
    startedAt: number,
    signal: AbortSignal,
  ): Promise<Turn> {
    const before = turns.get(agent)!
    const parent = before.at(-1)
    const promptTokenIds = parent
      ? Int32Array.from([...parent.promptTokenIds, ...parent.completionTokenIds, 7, 8])
      : Int32Array.from([1, 2, 3])
    const sampled = await saying.generate?.(promptTokenIds, agent, before.length, signal)
    const completionTokenIds = sampled?.tokenIds ?? Int32Array.from(Buffer.from(saying.content ?? 'tool'))
    const turn: Turn = {
      version: 2,
      index: before.length,
      agent,
      trajectory: agent,
      attempt: request.attempt,
      parent: parent?.index ?? null,
      branchReasons: parent ? [] : ['root'],
      promptTokenIds,
      completionTokenIds,
      rolloutLogprobs: sampled?.logprobs ?? new Float32Array(completionTokenIds.length).fill(-0.5),
      weightVersions: [...(sampled?.weightVersions ?? [{ fromToken: 0, version: 0 }])],
      ...(sampled?.mixedVersions && { mixedVersions: sampled.mixedVersions }),
      finishReason: sampled ? sampled.finishReason : saying.cut ? { unified: 'length', raw: 'length' } : { unified: 'stop', raw: 'stop' },
      delivered: 'delivered',
      messagesDelta: messages.slice(before.length * 2),
      message: { role: 'assistant', content: saying.content ?? null, ...(saying.toolCalls && { toolCalls: [...saying.toolCalls] }) },
      toolCalls: [...(saying.toolCalls ?? [])],
      sampling: request.sampling,
      usage: { promptTokens: promptTokenIds.length, completionTokens: completionTokenIds.length, cachedTokens: 0 },
      timing: { startedAt, endedAt: Date.now() },
      capture: { tokens: 'token-in', logprobs: 'temperature' },
    }
    before.push(turn)
    await request.onTurn?.(agent, turn)
    return turn
  }

  function checkBudget(session: Session): void {
    const all = [...session.turns.values()].flat()
    const sampled = all.reduce((sum, turn) => sum + turn.completionTokenIds.length, 0)
    const stopReason =
      all.length >= (session.request.maxTurns ?? Number.POSITIVE_INFINITY)
        ? 'turn-limit'
        : sampled >= (session.request.maxSessionTokens ?? Number.POSITIVE_INFINITY)
          ? 'token-limit'
          : null
    if (stopReason) throw new TrainError('AGENT_LIMIT', `The ${stopReason} is reached.`, { details: { stopReason } })
  }

  return {
    open(request) {
      const session: Session = {
        request,
        turns: new Map(request.agents.map(({ name }) => [name, []])),
        failure: null,
        ended: new AbortController(),
      }
      const urls = new Map(request.agents.map(({ name }) => [name, `memory://${opened++}/${name}`]))
      for (const [agent, url] of urls) sessions.set(url, { session, agent })
      const trajectories = (): Trajectory[] =>
        request.agents.map(({ name, trainable }) => ({
          version: 2,
          id: name,
          agent: name,
          policy: request.policy,
          trainable,
          startedBy: [],
          timing: null,
          turns: session.turns.get(name)!.slice(),
        }))
      return {
        endpoint: (agent) => ({ baseUrl: urls.get(agent)!, apiKey: 'any', model: request.policy }),
        trajectories,
        failure: () => session.failure,
        async close() {
          for (const url of urls.values()) sessions.delete(url)
          session.ended.abort(new TrainError('GATEWAY_UNAUTHORIZED', 'Unknown URL.'))
          return trajectories()
        },
      } satisfies PolicySession
    },
    async call({ baseUrl }, messages, signal) {
      calls++
      const found = sessions.get(baseUrl)
      if (!found) throw new TrainError('GATEWAY_UNAUTHORIZED', 'Unknown URL.')
      const { session, agent } = found
      try {
        checkBudget(session)
        await paused?.promise
        const startedAt = Date.now()
        const saying = say(messages, session.request, [...session.turns.values()].flat().length)
        const either = AbortSignal.any([session.ended.signal, ...(signal ? [signal] : [])])
        if (saying.heldMs) {
          session.request.onWait?.(true)
          await sleep(saying.heldMs, undefined, { signal: either }).finally(() => session.request.onWait?.(false))
        }
        if (saying.delayMs) await sleep(saying.delayMs, undefined, { signal: either })
        if (saying.error) throw saying.error
        return (await record(session, agent, messages, saying, startedAt, either)).message
      } catch (error) {
        failures++
        if (error instanceof TrainError) session.failure ??= error
        throw error
      }
    },
    async pause() {
      paused ??= Promise.withResolvers<void>()
      for (const listener of listeners) listener(true)
    },
    resume() {
      paused?.resolve()
      paused = null
      for (const listener of listeners) listener(false)
    },
    onPause(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    counts: () => ({ calls, failures, continuations: 0, branches: {}, tolerated: {}, inFlight: 0 }),
    close: async () => sessions.clear(),
    openSessions: () => sessions.size,
  }
}
