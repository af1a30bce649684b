import { createSharedAborts, isInfrastructureFailure, preciseNow, runAll } from '@aworld-train/core'
import {
  type AttemptName,
  type Episode,
  type ErrorCode,
  type ErrorRecord,
  type RolloutRequest,
  TrainError,
  type Trajectory,
} from '@aworld-train/protocol'
import { createAttemptExecutor } from './attempt-executor.ts'
import { processClock } from './clock.ts'
import { endRolloutSpan, startRolloutSpan } from './observe/rollout-spans.ts'
import { createRolloutTally, endEvent } from './rollout-counts.ts'
import { attemptLost, cancelled, workerLost } from './rollout-errors.ts'
import type { InProcessRolloutRunner, RolloutRunnerOptions } from './rollout-options.ts'
import { type CurrentAttempt, createEntry, type RolloutEntry } from './rollout-table.ts'
import { runRecordedAttempt } from './run-recorded-attempt.ts'
import type { Schedule } from './scheduler/schedule.ts'
import { createScheduler } from './scheduler/scheduler.ts'
import { createSchedulerState, type SchedulerCommand } from './scheduler/scheduler-state.ts'
import { scoreEpisode } from './score-episode.ts'
import { watchStrayErrors } from './stray-errors.ts'
import { toEpisode } from './to-episode.ts'
import { createWorkerLinks, termsOfThisProcess, thisProcess } from './worker-links.ts'

/** All rollouts share one policy, so its absence ends the run: rollouts that end for want of it would spoil a step. */
const isOfPolicy = ({ boundary }: ErrorRecord) => boundary === 'policy' || boundary === 'gateway'
/** The worker as the store keeps it. */
const workerOf = ({ worker, agent }: CurrentAttempt) => (worker === thisProcess ? null : { name: worker, agent })

interface RunningEntry {
  readonly key: string
  readonly attempt: CurrentAttempt
}

const older = (first: RunningEntry | null, next: RunningEntry): RunningEntry =>
  first && first.attempt.startedAt <= next.attempt.startedAt ? first : next

/**
 * Runs rollouts on workers; this process is the only one where the options name none. A rollout begins in the store, runs its agent, closes
 * its URLs and tools, is scored, and its result is kept. `decide` is the scheduler's rule by default. Throws AGENT_INVALID for two agents
 * of one name.
 */
export function createRolloutRunner(options: RolloutRunnerOptions, decide?: Schedule): InProcessRolloutRunner {
  const { program, gateway, store, onEvent, clock = processClock } = options
  const { concurrency = 32, limits = {}, retries = 2, maxLosses = 3, executor = createAttemptExecutor(options) } = options
  const scoring = { reward: options.reward, answerKey: options.answerKey, scoreUnfinished: options.scoreUnfinished ?? 'zero' }
  const names = program.agents.map(({ name }) => name)
  const repeated = names.find((name, index) => names.indexOf(name) !== index)
  if (repeated !== undefined) throw new TrainError('AGENT_INVALID', `Two agents are named "${repeated}"; give each its own name.`)
  const state = createSchedulerState({ retries, maxLosses, concurrency })
  const scheduler = createScheduler(state, carryOut, { clock, decide })
  const entries = new Map<string, RolloutEntry>()
  const links = createWorkerLinks({ state, tell: scheduler.tell, fail: failAll })
  const aborts = createSharedAborts()
  const tally = createRolloutTally()
  const idlers: (() => void)[] = []
  let closed: Error | null = null
  /** The reason why no worker can be had. */
  let failure: Error | null = null

  const unwatchPauses = gateway.onPause(links.pause)
  const unwatchErrors = watchStrayErrors((message) => warn(message, 'AGENT_FAILED'))

  function carryOut(command: SchedulerCommand): void {
    links.carryOut(command)
    const entry = 'key' in command ? entries.get(command.key) : undefined
    if (entry) carryOutFor(entry, command)
  }

  function carryOutFor(entry: RolloutEntry, command: SchedulerCommand): void {
    const { attempt } = entry
    if (command.type === 'begin') begin(entry).catch((error: unknown) => fail(entry, error))
    if (command.type === 'assign') entry.recorded = run(entry, command.attempt, command.worker)
    if (command.type === 'stop') attempt?.stop.abort(entry.cancelling.signal.reason)
    if (command.type === 'revoke') {
      if (!attempt) return
      const error = command.isLast
        ? workerLost(command.key, { losses: maxLosses, worker: attempt.worker })
        : attemptLost(command, attempt.worker)
      if (!entry.cancelling.signal.aborted) {
        links.lostAttempt(attempt.worker)
        tally.loss()
      }
      if (!command.isLast) giveUp(entry, error.toRecord())
      attempt.lost.abort(error)
    }
    if (command.type === 'supersede') {
      const { error, key } = command
      giveUp(entry, error)
      entry.recorded = keepTurns(entry, attempt!.number, attempt!.result!.trajectories).catch((cause: unknown) => fail(entry, cause))
      tally.retry()
      warn(`Attempt ${command.attempt} of rollout "${key}" failed and is tried again: ${error.message}`, error.code)
    }
    if (command.type === 'finish') finish(entry, attempt!).catch((error: unknown) => fail(entry, error))
    if (command.type === 'drop') void drop(entry)
  }

  /** Ends the current attempt without a result; another one follows. */
  function giveUp(entry: RolloutEntry, error: ErrorRecord): void {
    if (entry.attempt) entry.before = { worker: workerOf(entry.attempt), endedAt: preciseNow(), error }
    entry.attempt = null
  }

  async function begin(entry: RolloutEntry): Promise<void> {
    await entry.recorded
    entry.span ??= startRolloutSpan(entry.request)
    const { attempt, episode } = await store.begin(entry.request, entry.before)
    entry.before = null
    if (episode) return resolve(entry, episode)
    entry.number = attempt
    scheduler.tell({ type: 'begun', key: entry.request.key, attempt })
  }

  /** Resolves when no write of the attempt to the store is pending. */
  async function run(entry: RolloutEntry, number: number, worker: string): Promise<void> {
    const { key, split } = entry.request
    const { agent = null } = links.of(worker)
    const attempt: CurrentAttempt = {
      number,
      worker,
      agent,
      startedAt: clock.now(),
      stop: new AbortController(),
      lost: new AbortController(),
      result: null,
    }
    entry.attempt = attempt
    if (!entry.isAnnounced) onEvent?.({ type: 'rollout-start', at: Date.now(), rollout: key, attempt: number, split })
    entry.isAnnounced = true
    try {
      const result = await runRecordedAttempt({
        request: entry.request,
        attempt,
        rolloutSpan: entry.span!,
        limits,
        agents: program.agents,
        gateway,
        store,
        executor: links.of(worker),
        onOutcome: () => scheduler.tell({ type: 'result', worker, key, attempt: number }),
        onResult: tally.attempt,
        onWarning: ({ message, code }) => warn(message, code),
      })
      if (entry.attempt !== attempt) return await keepTurns(entry, number, result.trajectories)
      attempt.result = result
      scheduler.tell({ type: 'ended', key, attempt: number, stopReason: result.stopReason, error: result.error })
    } catch (error) {
      await fail(entry, error)
    }
  }

  async function finish(entry: RolloutEntry, attempt: CurrentAttempt): Promise<void> {
    const { number, result } = attempt
    const { request, span, cancelling } = entry
    const { signal } = cancelling
    const episode = await scoreEpisode(toEpisode(request, number, result!), request, scoring, { span: span!, signal })
    if (episode.stopReason === 'cancelled' || (signal.aborted && episode.stopReason === 'failed')) {
      await keepTurns(entry, number, result!.trajectories)
      throw stopped(entry)
    }
    if (isInfrastructureFailure(episode) && isOfPolicy(episode.error!)) {
      await keepTurns(entry, number, result!.trajectories)
      throw new TrainError(episode.error!.code as ErrorCode, episode.error!.message, { details: episode.error!.details ?? {} })
    }
    await store.finish(episode, workerOf(attempt))
    tally.finished(episode)
    onEvent?.(endEvent(episode))
    resolve(entry, episode)
  }

  function resolve(entry: RolloutEntry, episode: Episode): void {
    leave(entry)
    endRolloutSpan(entry.span!, episode)
    entry.settle.resolve(episode)
  }

  /** Ends the rollout without a result, because of `error`. */
  async function fail(entry: RolloutEntry, error: unknown): Promise<void> {
    const { request, cancelling, number, span } = entry
    if (entries.get(request.key) !== entry) return
    leave(entry)
    // If the store fails here too, the first error says more.
    await store.cancel(request.key, number).catch(() => {})
    if (span) endRolloutSpan(span, null, error)
    entry.settle.reject(failure ?? (error instanceof TrainError || !cancelling.signal.aborted ? error : cancelled(request.key, error)))
  }

  async function drop(entry: RolloutEntry): Promise<void> {
    await entry.recorded
    await fail(entry, entry.isAnnounced ? stopped(entry) : cancelled(entry.request.key, entry.cancelling.signal.reason))
  }

  function leave(entry: RolloutEntry): void {
    entry.unwatch()
    entries.delete(entry.request.key)
    scheduler.tell({ type: 'closed', key: entry.request.key })
    if (entries.size === 0) for (const wake of idlers.splice(0)) wake()
  }

  /** Turns of an attempt without a result stay on record, because the ledger accounts for their tokens. */
  async function keepTurns({ request }: RolloutEntry, attempt: number, trajectories: readonly Trajectory[]): Promise<void> {
    tally.superseded(trajectories)
    await Promise.all(trajectories.flatMap(({ agent, turns }) => turns.map((turn) => store.appendTurn(request.key, attempt, agent, turn))))
  }

  function stopped({ request, number, cancelling }: RolloutEntry): TrainError {
    const { key: rollout, split, task } = request
    const nothing = { reward: null, turns: 0, toolCalls: 0, sampledTokens: 0, durationMs: 0 }
    const end = { type: 'rollout-end', at: Date.now(), rollout, attempt: number!, split, taskId: task.id, stopReason: 'cancelled' } as const
    onEvent?.({ ...end, ...nothing })
    return cancelled(rollout, cancelling.signal.reason)
  }

  function warn(message: string, code: string): void {
    onEvent?.({ type: 'warning-raised', at: Date.now(), code, message })
  }

  function cancel(entry: RolloutEntry, reason: unknown): void {
    entry.cancelling.abort(reason)
    scheduler.tell({ type: 'cancel', key: entry.request.key })
  }

  /** Cancels every rollout, including those that are submitted later. */
  function stop(reason: Error): void {
    closed ??= reason
    for (const entry of [...entries.values()]) cancel(entry, closed)
  }

  function failAll(error: Error): void {
    failure ??= error
    stop(error)
  }

  async function submit(request: RolloutRequest, signal: AbortSignal): Promise<Episode> {
    const { key } = request
    if (entries.has(key)) throw new TrainError('ROLLOUT_CONFLICT', `Rollout "${key}" is under way; wait for it, or use another key.`)
    const settled = Promise.withResolvers<Episode>()
    const entry = createEntry(request, settled)
    entries.set(key, entry)
    // A store that cannot write this cannot begin the rollout either, and that error is reported.
    store.queue(request).catch(() => {})
    scheduler.tell({ type: 'submit', key })
    if (signal.aborted || closed) cancel(entry, closed ?? signal.reason)
    else entry.unwatch = aborts.watch(signal, () => cancel(entry, signal.reason))
    return settled.promise
  }

  const { workers } = links
  if (options.workers) options.workers.attach(workers)
  else workers.hello({ ...termsOfThisProcess(concurrency), name: thisProcess, link: executor })

  return {
    workers,
    run: submit,
    runAll: (requests, signal) => runAll(submit, requests, signal),
    slots: () =>
      Math.min(
        concurrency,
        Array.from(state.workers.values()).reduce((sum, { terms }) => sum + terms.slots, 0),
      ),
    supersededTokens: () => tally.counts().supersededTokens,
    counts() {
      const queued = state.queue.size + state.again.size + state.waiting.size
      return { ...tally.counts(), queued, running: state.jobs.size - queued }
    },
    oldest() {
      const running = Array.from(entries.values(), ({ request, attempt }) => attempt && { key: request.key, attempt })
      const first = running.filter((each) => each !== null).reduce<RunningEntry | null>(older, null)
      if (!first) return null
      const { key, attempt } = first
      const isIts = (call: AttemptName) => call.key === key && call.attempt === attempt.number
      const call = links.find(attempt.worker)?.openCalls?.().find(isIts) ?? null
      const worker = attempt.worker === thisProcess ? null : attempt.worker
      return { key, attempt: attempt.number, worker, runningMs: clock.now() - attempt.startedAt, call }
    },
    async close() {
      stop(new TrainError('ROLLOUT_CANCELLED', 'The runner was closed; run the same command again and its rollouts run again.'))
      if (entries.size > 0) await new Promise<void>((wake) => idlers.push(wake))
      scheduler.close()
      unwatchPauses()
      unwatchErrors()
    },
  }
}
