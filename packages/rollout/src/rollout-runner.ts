import { setTimeout as sleep } from 'node:timers/promises'
import { runAll } from '@aworld-train/core'
import { type Episode, type RolloutRequest, type StopReason, TrainError, type Trajectory, toTrainError } from '@aworld-train/protocol'
import type { Span } from '@opentelemetry/api'
import { createAttemptExecutor } from './attempt-executor.ts'
import { endAttemptSpan, endRolloutSpan, inRewardSpan, startAttemptSpan, startRolloutSpan } from './observe/rollout-spans.ts'
import { decideRetry } from './retry-decision.ts'
import { decideReward } from './reward-decision.ts'
import { cancelled } from './rollout-errors.ts'
import type { InProcessRolloutRunner, RolloutRunnerOptions } from './rollout-options.ts'
import { createRolloutQueue } from './rollout-queue.ts'
import { type AttemptResult, runAttempt } from './run-attempt.ts'
import { toEpisode } from './to-episode.ts'

const defaultTimeoutMs = 120_000

interface Attempts {
  readonly span: Span
  readonly signal: AbortSignal
  readonly onAttempt: (attempt: number) => void
}

/** Runs rollouts in this process, `concurrency` at a time: begin, run the agent, close its URLs and tools, score, keep the result. Throws AGENT_INVALID for two agents of one name. */
export function createRolloutRunner(options: RolloutRunnerOptions): InProcessRolloutRunner {
  const { program, gateway, reward, store, answerKey, onEvent } = options
  const { concurrency = 32, limits = {}, retries = 2, scoreUnfinished = 'zero', executor = createAttemptExecutor(options) } = options
  const names = program.agents.map(({ name }) => name)
  const repeated = names.find((name, index) => names.indexOf(name) !== index)
  if (repeated !== undefined) throw new TrainError('AGENT_INVALID', `Two agents are named "${repeated}"; give each its own name.`)
  const queue = createRolloutQueue(concurrency)
  const unwatch = gateway.onPause((paused) => (paused ? executor.hold() : executor.resume()))
  const closing = new AbortController()
  const ends: Partial<Record<StopReason, number>> = {}
  const count = { finished: 0, toolCalls: 0, askedToolCalls: 0, toolErrors: 0, functionCalls: 0, retries: 0, supersededTokens: 0 }

  async function runOne(request: RolloutRequest, signal: AbortSignal, onAttempt: (attempt: number) => void): Promise<Episode> {
    const span = startRolloutSpan(request)
    try {
      const episode = await runAttempts(request, { span, signal, onAttempt })
      endRolloutSpan(span, episode)
      return episode
    } catch (error) {
      endRolloutSpan(span, null, error)
      throw error
    }
  }

  async function runAttempts(request: RolloutRequest, { span, signal, onAttempt }: Attempts): Promise<Episode> {
    for (let retried = 0; ; retried++) {
      const begun = await store.begin(request)
      if (begun.episode) return begun.episode
      const { attempt } = begun
      onAttempt(attempt)
      if (retried === 0) onEvent?.({ type: 'rollout-start', at: Date.now(), rollout: request.key, attempt, split: request.split })
      const result = await attemptOnce(request, attempt, span, signal)
      const { stopReason, error } = result
      const delayMs = decideRetry({ stopReason, error, retried, retries })
      if (delayMs === null) return finish(request, attempt, result, span, signal)
      await keepTurns(request.key, attempt, result)
      count.retries++
      warn(`Attempt ${attempt} of rollout "${request.key}" failed and is tried again: ${error!.message}`, error!.code)
      await sleep(delayMs, undefined, { signal }).catch(() => {
        throw stopped(request, attempt, signal.reason)
      })
    }
  }

  async function attemptOnce(request: RolloutRequest, attempt: number, rollout: Span, signal: AbortSignal): Promise<AttemptResult> {
    const span = startAttemptSpan({ rollout, key: request.key, attempt, agents: program.agents })
    const merged = { ...limits, ...definedOnly(request.limits) }
    let storeFailure: TrainError | null = null
    const result = await runAttempt({
      request,
      attempt,
      limits: { ...merged, timeoutMs: merged.timeoutMs ?? defaultTimeoutMs },
      agents: program.agents,
      gateway,
      executor,
      span,
      signal,
      async onTurn(agent, turn) {
        try {
          await store.appendTurn(request.key, attempt, agent, turn)
        } catch (error) {
          storeFailure ??= toTrainError(error, 'STORE_FAILED')
          throw storeFailure
        }
      },
      onWarning: ({ message, code }) => warn(message, code),
    }).catch((error: unknown) => {
      span.end()
      throw error
    })
    endAttemptSpan(span, result)
    count.toolCalls += result.toolCalls.length
    for (const { turns } of result.trajectories) for (const turn of turns) count.askedToolCalls += turn.toolCalls.length
    count.toolErrors += result.toolErrors
    count.functionCalls += result.functionCalls
    if (storeFailure) throw storeFailure
    return result
  }

  async function finish(
    request: RolloutRequest,
    attempt: number,
    result: AttemptResult,
    span: Span,
    signal: AbortSignal,
  ): Promise<Episode> {
    const episode = await scored(toEpisode(request, attempt, result), request, span, signal)
    const cutOff = episode.stopReason === 'cancelled' || (signal.aborted && episode.stopReason === 'failed')
    if (cutOff) {
      await keepTurns(request.key, attempt, result)
      throw stopped(request, attempt, signal.reason)
    }
    await store.finish(episode)
    count.finished++
    ends[episode.stopReason] = (ends[episode.stopReason] ?? 0) + 1
    announceEnd(episode)
    return episode
  }

  async function scored(episode: Episode, { task }: RolloutRequest, span: Span, signal: AbortSignal): Promise<Episode> {
    const { stopReason, trajectories } = episode
    const hasTurns = trajectories.some(({ turns }) => turns.length > 0)
    const decision = reward ? decideReward({ stopReason, hasTurns }, scoreUnfinished) : 'none'
    if (!reward || decision === 'none') return episode
    if (decision === 'zero') return { ...episode, reward: 0 }
    try {
      const output = await inRewardSpan(span, reward.name, () => reward.score({ task, episode, answer: answerKey(task.id) }, signal))
      return { ...episode, reward: output.reward, scores: { ...output.scores } }
    } catch (error) {
      return { ...episode, stopReason: 'failed', error: toTrainError(error, 'REWARD_FAILED').toRecord() }
    }
  }

  /** Sampled tokens of an attempt without result stay on record: the ledger accounts for them. */
  async function keepTurns(rollout: string, attempt: number, { trajectories }: AttemptResult): Promise<void> {
    count.supersededTokens += sampledTokens(trajectories)
    await Promise.all(trajectories.flatMap(({ agent, turns }) => turns.map((turn) => store.appendTurn(rollout, attempt, agent, turn))))
  }

  function stopped(request: RolloutRequest, attempt: number, reason: unknown): TrainError {
    const error = cancelled(request.key, reason)
    const { key: rollout, split, task } = request
    const nothing = { reward: null, turns: 0, toolCalls: 0, sampledTokens: 0, durationMs: 0 }
    onEvent?.({ type: 'rollout-end', at: Date.now(), rollout, attempt, split, taskId: task.id, stopReason: 'cancelled', ...nothing })
    return error
  }

  function announceEnd(episode: Episode): void {
    const { rollout, attempt, split, taskId, stopReason, error, timing, toolCalls, trajectories } = episode
    onEvent?.({
      type: 'rollout-end',
      at: Date.now(),
      rollout,
      attempt,
      split,
      taskId,
      stopReason,
      reward: episode.reward,
      turns: trajectories.reduce((sum, { turns }) => sum + turns.length, 0),
      toolCalls: toolCalls.length,
      sampledTokens: sampledTokens(trajectories),
      durationMs: timing.endedAt - timing.startedAt,
      ...(error && { error }),
    })
  }

  function warn(message: string, code: string): void {
    onEvent?.({ type: 'warning-raised', at: Date.now(), code, message })
  }

  function enqueue(request: RolloutRequest, signal: AbortSignal): Promise<Episode> {
    // What keeps the store from writing this fails the beginning of the rollout too.
    store.queue(request).catch(() => {})
    let current: number | null = null
    return queue
      .add(() => runOne(request, signal, (attempt) => (current = attempt)), signal)
      .catch(async (error: unknown) => {
        // Where this cannot be kept, the first error says more.
        await store.cancel(request.key, current).catch(() => {})
        if (error instanceof TrainError || !signal.aborted) throw error
        throw cancelled(request.key, error)
      })
  }

  return {
    run: (request, signal) => enqueue(request, AbortSignal.any([signal, closing.signal])),
    runAll: (requests, signal) => runAll(enqueue, requests, AbortSignal.any([signal, closing.signal])),
    supersededTokens: () => count.supersededTokens,
    counts: () => ({ ...count, queued: queue.queued(), running: queue.running(), episodesByStopReason: { ...ends } }),
    async close() {
      closing.abort(new TrainError('ROLLOUT_CANCELLED', 'The runner was closed; run the same command again and its rollouts run again.'))
      await queue.idle()
      unwatch()
    },
  }
}

function sampledTokens(trajectories: readonly Trajectory[]): number {
  return trajectories.reduce((sum, { turns }) => sum + turns.reduce((count, turn) => count + turn.completionTokenIds.length, 0), 0)
}

/** Without undefined members, so that an undefined limit of a request leaves the runner's own in force. */
function definedOnly<T extends object>(value: T): Partial<T> {
  return Object.fromEntries(Object.entries(value).filter(([, entry]) => entry !== undefined)) as Partial<T>
}
