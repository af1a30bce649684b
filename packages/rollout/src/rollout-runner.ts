import {
  type AttemptName,
  createSharedAborts,
  type Episode,
  type ErrorCode,
  type ErrorRecord,
  isInfrastructureFailure,
  preciseNow,
  type RolloutRequest,
  runAll,
  TrainError,
  type Trajectory,
} from '@aworld-train/core'
import { createAttemptExecutor } from './attempt-executor.ts'
import { type Clock, processClock } from './clock.ts'
import { endRolloutSpan, startRolloutSpan } from './observe/rollout-spans.ts'
import { createRolloutTally, endEvent } from './rollout-counts.ts'
import { attemptLost, cancelled, workerLost } from './rollout-errors.ts'
import type { InProcessRolloutRunner, RolloutCounts, RolloutRunnerOptions, RunningAttempt } from './rollout-options.ts'
import { type CurrentAttempt, type OpenRollouts, type RolloutEntry, RolloutTable } from './rollout-table.ts'
import type { RolloutWorkers } from './rollout-workers.ts'
import { runRecordedAttempt } from './run-recorded-attempt.ts'
import type { Schedule } from './scheduler/schedule.ts'
import { createScheduler, type Scheduler } from './scheduler/scheduler.ts'
import { createSchedulerState, type SchedulerCommand, type SchedulerState } from './scheduler/scheduler-state.ts'
import { scoreEpisode } from './score-episode.ts'
import { type GroupScoring, scoreGroup, scoreGroups } from './score-group.ts'
import { watchStrayErrors } from './stray-errors.ts'
import { toEpisode } from './to-episode.ts'
import { termsOfThisProcess, thisProcess, WorkerLinks } from './worker-links.ts'

/** All rollouts share one policy, so its absence ends the run: rollouts that end for want of it would spoil a step. */
const isOfPolicy = ({ boundary }: ErrorRecord) => boundary === 'policy' || boundary === 'gateway'
/** The worker as the store keeps it. */
const workerOf = ({ worker, agent }: CurrentAttempt) => (worker === thisProcess ? null : { name: worker, agent })

/**
 * Runs rollouts on workers; this process is the only one where the options name none. A rollout begins in the store, runs its agent, closes
 * its URLs and tools, is scored, and its result is kept. `decide` is the scheduler's rule by default. Throws AGENT_INVALID for two agents
 * of one name.
 */
export const createRolloutRunner = (options: RolloutRunnerOptions, decide?: Schedule): InProcessRolloutRunner =>
  new CoordinatedRunner(options, decide)

class CoordinatedRunner implements InProcessRolloutRunner {
  readonly #options: RolloutRunnerOptions
  readonly #clock: Clock
  readonly #concurrency: number
  readonly #maxLosses: number
  readonly #scoring: GroupScoring
  readonly #state: SchedulerState
  readonly #scheduler: Scheduler
  readonly #links: WorkerLinks
  readonly #table = new RolloutTable()
  readonly #aborts = createSharedAborts()
  readonly #tally = createRolloutTally()
  readonly #unwatch: readonly (() => void)[]
  #closed: Error | null = null
  /** The reason why no worker can be had. */
  #failure: Error | null = null

  constructor(options: RolloutRunnerOptions, decide: Schedule | undefined) {
    const { program, gateway, clock = processClock, concurrency = 32, retries = 2, maxLosses = 3 } = options
    const names = program.agents.map(({ name }) => name)
    const repeated = names.find((name, index) => names.indexOf(name) !== index)
    if (repeated !== undefined) throw new TrainError('AGENT_INVALID', `Two agents are named "${repeated}"; give each its own name.`)
    this.#options = options
    this.#clock = clock
    this.#concurrency = concurrency
    this.#maxLosses = maxLosses
    const { reward, rewardModels, answerKey, scoreUnfinished = 'zero', requiresModelCall = true, seed = 0, store } = options
    const models = rewardModels ? { ...rewardModels, gateway } : null
    this.#scoring = { reward, answerKey, scoreUnfinished, requiresModelCall, models, seed, store }
    this.#state = createSchedulerState({ retries, maxLosses, concurrency })
    this.#scheduler = createScheduler(this.#state, (command) => this.#carryOut(command), { clock, decide })
    this.#links = new WorkerLinks({ state: this.#state, tell: this.#scheduler.tell, fail: (error) => this.#failAll(error) })
    this.#unwatch = [
      gateway.onPause((isPaused) => this.#links.pause(isPaused)),
      watchStrayErrors((message) => this.#warn(message, 'AGENT_FAILED')),
    ]
    if (options.workers) options.workers.attach(this.workers)
    else {
      const link = options.executor ?? createAttemptExecutor(options)
      this.workers.hello({ ...termsOfThisProcess(concurrency), name: thisProcess, link })
    }
  }

  get rollouts(): OpenRollouts {
    return this.#table
  }

  get workers(): RolloutWorkers {
    return this.#links
  }

  async run(request: RolloutRequest, signal: AbortSignal): Promise<Episode> {
    const { key } = request
    const settled = Promise.withResolvers<Episode>()
    const entry = this.#table.add(request, settled)
    // A store that cannot write this cannot begin the rollout either, and that error is reported.
    this.#options.store.queue(request).catch(() => {})
    this.#scheduler.tell({ type: 'submit', key })
    if (signal.aborted || this.#closed) this.#cancel(entry, this.#closed ?? signal.reason)
    else entry.unwatch = this.#aborts.watch(signal, () => this.#cancel(entry, signal.reason))
    return settled.promise
  }

  async runAll(requests: readonly RolloutRequest[], signal: AbortSignal): Promise<Episode[]> {
    const episodes = await runAll((request, each) => this.run(request, each), requests, signal)
    if (!this.#options.reward?.scoreGroup) return episodes
    return await scoreGroups(requests, episodes, (members, ended) => this.scoreGroup(members, ended, signal))
  }

  scoreGroup(requests: readonly RolloutRequest[], episodes: readonly Episode[], signal: AbortSignal): Promise<readonly Episode[]> {
    return scoreGroup(requests, episodes, this.#scoring, signal)
  }

  slots(): number {
    const slots = Array.from(this.#state.workers.values()).reduce((sum, { terms }) => sum + terms.slots, 0)
    return Math.min(this.#concurrency, slots)
  }

  supersededTokens(policy?: string): number {
    return this.#tally.supersededTokens(policy)
  }

  counts(): RolloutCounts {
    const { queue, again, waiting, jobs } = this.#state
    const queued = queue.size + again.size + waiting.size
    return { ...this.#tally.counts(), queued, running: jobs.size - queued }
  }

  oldest(): RunningAttempt | null {
    const oldest = this.#table.oldest()
    if (!oldest) return null
    const { key, attempt } = oldest
    const isIts = (call: AttemptName) => call.key === key && call.attempt === attempt.number
    const call = this.#links.find(attempt.worker)?.openCalls?.().find(isIts) ?? null
    const worker = attempt.worker === thisProcess ? null : attempt.worker
    return { key, attempt: attempt.number, worker, runningMs: this.#clock.now() - attempt.startedAt, call }
  }

  async close(): Promise<void> {
    this.#stop(new TrainError('ROLLOUT_CANCELLED', 'The runner was closed; run the same command again and its rollouts run again.'))
    await this.#table.untilEmpty()
    this.#scheduler.close()
    for (const unwatch of this.#unwatch) unwatch()
  }

  #carryOut(command: SchedulerCommand): void {
    this.#links.carryOut(command)
    const entry = 'key' in command ? this.#table.find(command.key) : undefined
    if (entry) this.#carryOutFor(entry, command)
  }

  #carryOutFor(entry: RolloutEntry, command: SchedulerCommand): void {
    const { attempt } = entry
    if (command.type === 'begin') this.#begin(entry).catch((error: unknown) => this.#fail(entry, error))
    if (command.type === 'assign') entry.recorded = this.#runAttempt(entry, command.attempt, command.worker)
    if (command.type === 'stop') attempt?.stop.abort(entry.cancelling.signal.reason)
    if (command.type === 'revoke') {
      if (!attempt) return
      const error = command.isLast
        ? workerLost(command.key, { losses: this.#maxLosses, worker: attempt.worker })
        : attemptLost(command, attempt.worker)
      if (!entry.cancelling.signal.aborted) {
        this.#links.lostAttempt(attempt.worker)
        this.#tally.loss()
      }
      if (!command.isLast) this.#giveUp(entry, error.toRecord())
      attempt.lost.abort(error)
    }
    if (command.type === 'supersede') {
      const { error, key } = command
      this.#giveUp(entry, error)
      entry.recorded = this.#keepTurns(entry, attempt!.number, attempt!.result!.trajectories).catch((cause: unknown) =>
        this.#fail(entry, cause),
      )
      this.#tally.retry()
      this.#warn(`Attempt ${command.attempt} of rollout "${key}" failed and is tried again: ${error.message}`, error.code)
    }
    if (command.type === 'finish') this.#finish(entry, attempt!).catch((error: unknown) => this.#fail(entry, error))
    if (command.type === 'drop') void this.#drop(entry)
  }

  /** Ends the current attempt without a result; another one follows. */
  #giveUp(entry: RolloutEntry, error: ErrorRecord): void {
    if (entry.attempt) entry.before = { worker: workerOf(entry.attempt), endedAt: preciseNow(), error }
    entry.attempt = null
  }

  async #begin(entry: RolloutEntry): Promise<void> {
    await entry.recorded
    entry.span ??= startRolloutSpan(entry.request)
    const { attempt, episode } = await this.#options.store.begin(entry.request, entry.before)
    entry.before = null
    if (episode) return this.#resolve(entry, episode)
    entry.number = attempt
    this.#scheduler.tell({ type: 'begun', key: entry.request.key, attempt })
  }

  /** Resolves when no write of the attempt to the store is pending. */
  async #runAttempt(entry: RolloutEntry, number: number, worker: string): Promise<void> {
    const { key, split } = entry.request
    const { program, gateway, store, limits } = this.#options
    const { requiresModelCall } = this.#scoring
    const link = this.#links.find(worker)!
    const attempt: CurrentAttempt = {
      number,
      worker,
      agent: link.agent ?? null,
      startedAt: this.#clock.now(),
      stop: new AbortController(),
      lost: new AbortController(),
      result: null,
    }
    entry.attempt = attempt
    if (this.#table.start(entry)) this.#options.onEvent?.({ type: 'rollout-start', at: Date.now(), rollout: key, attempt: number, split })
    try {
      const result = await runRecordedAttempt({
        request: entry.request,
        attempt,
        rolloutSpan: entry.span!,
        limits: limits ?? {},
        agents: program.agents,
        gateway,
        store,
        executor: link,
        requiresModelCall,
        onOutcome: () => this.#scheduler.tell({ type: 'result', worker, key, attempt: number }),
        onResult: this.#tally.attempt,
        onWarning: ({ message, code }) => this.#warn(message, code),
      })
      if (entry.attempt !== attempt) return await this.#keepTurns(entry, number, result.trajectories)
      attempt.result = result
      this.#scheduler.tell({ type: 'ended', key, attempt: number, stopReason: result.stopReason, error: result.error })
    } catch (error) {
      await this.#fail(entry, error)
    }
  }

  async #finish(entry: RolloutEntry, attempt: CurrentAttempt): Promise<void> {
    const { number, result } = attempt
    const { request, span, cancelling } = entry
    const { signal } = cancelling
    const files = result!.files ?? []
    const episode = await scoreEpisode(toEpisode(request, number, result!), files, request, this.#scoring, { span: span!, signal })
    if (episode.stopReason === 'cancelled' || (signal.aborted && episode.stopReason === 'failed')) {
      await this.#keepTurns(entry, number, result!.trajectories)
      throw this.#stopped(entry)
    }
    if (isInfrastructureFailure(episode) && isOfPolicy(episode.error!)) {
      await this.#keepTurns(entry, number, result!.trajectories)
      throw new TrainError(episode.error!.code as ErrorCode, episode.error!.message, { details: episode.error!.details ?? {} })
    }
    await this.#options.store.finish(episode, workerOf(attempt), files)
    this.#tally.finished(episode)
    this.#options.onEvent?.(endEvent(episode))
    this.#resolve(entry, episode)
  }

  #resolve(entry: RolloutEntry, episode: Episode): void {
    if (this.#end(entry)) this.#table.remove(entry)
    endRolloutSpan(entry.span!, episode)
    entry.settle.resolve(episode)
  }

  /** Ends the rollout without a result, because of `error`. */
  async #fail(entry: RolloutEntry, error: unknown): Promise<void> {
    const { request, cancelling, number, span } = entry
    if (!this.#end(entry)) return
    // If the store fails here too, the first error says more.
    await this.#options.store.cancel(request.key, number).catch(() => {})
    this.#table.remove(entry)
    if (span) endRolloutSpan(span, null, error)
    entry.settle.reject(
      this.#failure ?? (error instanceof TrainError || !cancelling.signal.aborted ? error : cancelled(request.key, error)),
    )
  }

  async #drop(entry: RolloutEntry): Promise<void> {
    await entry.recorded
    await this.#fail(entry, entry.hasStarted ? this.#stopped(entry) : cancelled(entry.request.key, entry.cancelling.signal.reason))
  }

  /** Ends what the scheduler keeps of it. Returns false where it ended before. */
  #end(entry: RolloutEntry): boolean {
    const isFirst = this.#table.end(entry)
    if (isFirst) this.#scheduler.tell({ type: 'closed', key: entry.request.key })
    return isFirst
  }

  /** Turns of an attempt without a result stay on record, because the ledger accounts for their tokens. */
  async #keepTurns({ request }: RolloutEntry, attempt: number, trajectories: readonly Trajectory[]): Promise<void> {
    this.#tally.superseded(trajectories)
    await Promise.all(
      trajectories.flatMap(({ id, turns }) => turns.map((turn) => this.#options.store.appendTurn(request.key, attempt, id, turn))),
    )
  }

  #stopped({ request, number, cancelling }: RolloutEntry): TrainError {
    const { key: rollout, split, task } = request
    const nothing = { reward: null, turns: 0, toolCalls: 0, sampledTokens: 0, durationMs: 0 }
    const end = { type: 'rollout-end', at: Date.now(), rollout, attempt: number!, split, taskId: task.id, stopReason: 'cancelled' } as const
    this.#options.onEvent?.({ ...end, ...nothing })
    return cancelled(rollout, cancelling.signal.reason)
  }

  #warn(message: string, code: string): void {
    this.#options.onEvent?.({ type: 'warning-raised', at: Date.now(), code, message })
  }

  #cancel(entry: RolloutEntry, reason: unknown): void {
    entry.cancelling.abort(reason)
    this.#scheduler.tell({ type: 'cancel', key: entry.request.key })
  }

  /** Cancels every rollout, including those that are submitted later. */
  #stop(reason: Error): void {
    this.#closed ??= reason
    for (const entry of this.#table.all()) this.#cancel(entry, this.#closed)
  }

  #failAll(error: Error): void {
    this.#failure ??= error
    this.#stop(error)
  }
}
