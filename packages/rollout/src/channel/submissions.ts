import { type ChannelSubmit, parseChannelKey, type RolloutRequest, type RolloutState, TrainError, toTrainError } from '@aworld-train/core'
import type { EngineConnection } from './channel-connection.ts'
import type { ChannelOutcome } from './channel-tally.ts'
import type { ChannelServerOptions, EngineLink } from './channel-types.ts'
import type { ClientSession } from './client-sessions.ts'
import type { Submission, SubmissionTable } from './submission-table.ts'
import { requireOwnKey, toRolloutRequest } from './to-request.ts'
import { type ResultFrame, toFailedResult, toResult } from './to-result.ts'

type Options = Pick<
  ChannelServerOptions,
  'service' | 'engine' | 'answers' | 'toTask' | 'solution' | 'onOutcome' | 'maxCompletionTokens' | 'incompleteEpisodes' | 'ownReward'
> &
  Required<Pick<ChannelServerOptions, 'rows' | 'reward' | 'graceMs'>> & { readonly rolloutTimeoutMs: number | null }

type Ending = Pick<RolloutState, 'status' | 'episode' | 'error'>

/** Submissions of trainer clients, each kept until its result. */
export interface Submissions {
  submit(session: ClientSession, submit: ChannelSubmit): void
  cancel(session: ClientSession, key: string, reason: string): void
  /** Its rollouts wait for the next connection of their trainer client, for the grace period. */
  leave(connection: EngineConnection): number
  /** Cancels every submission of a worker, because a newer start of its run is connected. */
  supersede(session: ClientSession): void
  started(key: string): void
  report(key: string, outcome: ChannelOutcome['outcome'], more?: Partial<ChannelOutcome>): void
  /** Whether a worker waits for anything. */
  has(session: ClientSession): boolean
  open(): number
  close(): Promise<void>
}

export const createSubmissions = (options: Options): Submissions => new ServiceSubmissions(options)

class ServiceSubmissions implements Submissions {
  readonly #options: Options
  readonly #link: EngineLink
  readonly #table: SubmissionTable
  readonly #graces = new Set<NodeJS.Timeout>()

  constructor(options: Options) {
    this.#options = options
    this.#link = options.engine.link
    this.#table = options.engine.link.submissions
  }

  submit(session: ClientSession, submit: ChannelSubmit): void {
    const existing = this.#table.find(submit.key)
    if (existing) {
      this.#attach(existing, session, submit)
      return
    }
    const submission = this.#table.add(session, submit)
    const before = this.#table.ending(submit.key)
    if (before) void before.then(() => this.#table.has(submission) && this.#begin(submission))
    else this.#begin(submission)
  }

  cancel(session: ClientSession, key: string, reason: string): void {
    const submission = this.#table.find(key)
    if (submission?.session !== session) return
    this.#end(submission, 'cancelled', new TrainError('ROLLOUT_CANCELLED', `The trainer cancelled rollout "${key}": ${reason}.`))
  }

  leave(connection: EngineConnection): number {
    const { graceMs } = this.#options
    const abandoned = this.#link.disconnect(connection)
    if (abandoned.length === 0) return 0
    const grace = setTimeout(() => {
      this.#graces.delete(grace)
      for (const submission of abandoned) {
        if (submission.connection || !this.#table.has(submission)) continue
        const message = `The connection that submitted rollout "${submission.key}" was lost, and the trainer did not come back in ${graceMs} ms.`
        this.#end(submission, 'lost', new TrainError('CHANNEL_LOST', message))
      }
    }, graceMs)
    this.#graces.add(grace)
    return abandoned.length
  }

  supersede(session: ClientSession): void {
    for (const submission of this.#table.of(session)) {
      const message = `A newer start of run "${session.hello.run}" has taken over from the one that submitted rollout "${submission.key}".`
      this.#end(submission, 'superseded', new TrainError('CHANNEL_SUPERSEDED', message))
    }
  }

  started(key: string): void {
    this.#table.served(key)?.connection?.send({ type: 'started', key })
  }

  report(key: string, outcome: ChannelOutcome['outcome'], more: Partial<ChannelOutcome> = {}): void {
    const parts = parseChannelKey(key)
    if (!parts) return
    const { run, incarnation, partition } = parts
    this.#options.onOutcome?.({ key, run, incarnation, partition, outcome, ...more })
  }

  has(session: ClientSession): boolean {
    return this.#table.of(session).length > 0
  }

  open(): number {
    return this.#table.size
  }

  async close(): Promise<void> {
    for (const grace of this.#graces) clearTimeout(grace)
    this.#graces.clear()
    const reason = new TrainError('ROLLOUT_CANCELLED', 'The rollout service stopped; submit the rollout again when it is back.')
    for (const submission of this.#table.all()) this.#end(submission, 'lost', reason)
    await this.#table.untilEnded()
  }

  #begin(submission: Submission): void {
    const { service } = this.#options
    const { key, session, submit, connection } = submission
    try {
      const { status } = service.submit(this.#requestOf(session, submit))
      if (status === 'queued' || status === 'running') this.#announce(key, connection, status)
    } catch (cause) {
      this.#refuse(submission, cause)
      return
    }
    const ended = service.wait(key, { samples: false })
    ended.then((state) => this.#settle(submission, state)).catch((cause) => this.#refuse(submission, cause))
  }

  /** The same submission over a new connection, or of another worker of its trainer client. */
  #attach(existing: Submission, session: ClientSession, submit: ChannelSubmit): void {
    const { service } = this.#options
    const { key } = submit
    let status: RolloutState['status']
    try {
      status = service.submit(this.#requestOf(session, submit)).status
    } catch (cause) {
      session.connection?.send(toFailedResult(key, toTrainError(cause, 'ROLLOUT_INVALID').toRecord()).message)
      return
    }
    existing.session = session
    this.#announce(key, session.connection, status)
    this.#link.connect(existing, session.connection)
  }

  #requestOf({ hello }: ClientSession, submit: ChannelSubmit): RolloutRequest {
    const { answers, engine, toTask, rolloutTimeoutMs, maxCompletionTokens } = this.#options
    requireOwnKey(submit, hello)
    const { task, answer, kind } = toTask(submit.row, submit)
    answers.hold(submit.key, answer)
    return toRolloutRequest(submit, { hello, task, kind, policy: engine.name, rolloutTimeoutMs, maxCompletionTokens })
  }

  #announce(key: string, connection: EngineConnection | null, status: RolloutState['status']): void {
    connection?.send({ type: 'queued', key })
    // While the last rollout of the key is being cancelled, it is that one which runs.
    if (status === 'running' && !this.#table.ending(key)) connection?.send({ type: 'started', key })
  }

  #refuse(submission: Submission, cause: unknown): void {
    const error = toTrainError(cause, 'ROLLOUT_INVALID')
    const status = error.code === 'ROLLOUT_CANCELLED' ? 'cancelled' : 'failed'
    this.#settle(submission, { status, episode: null, error: error.toRecord() }, error)
  }

  #settle(submission: Submission, ending: Ending, reason = over(submission)): void {
    const { service, answers } = this.#options
    if (!this.#link.release(submission, reason)) return
    answers.release(submission.key)
    // The end of the service cut it off; its trainer client submits it again when the service is back.
    if (ending.status === 'cancelled' && service.counts().stopping) return
    // Without a connection the result stays in the store until it is asked for again.
    if (submission.connection) this.#sendResult(submission.connection, this.#frameOf(submission, ending))
  }

  #frameOf({ key, submit, session }: Submission, { status, episode, error }: Ending): ResultFrame {
    const { rows, reward, incompleteEpisodes, ownReward, solution } = this.#options
    if (status === 'done' && episode) {
      const { limits } = session.hello
      return toResult(key, episode, { rows, limits, partition: submit.partition, reward, incompleteEpisodes, ownReward, solution })
    }
    const fallback = new TrainError('STORE_FAILED', `Rollout "${key}" ended as ${status} and left no episode; submit it again.`)
    return toFailedResult(key, error ?? fallback.toRecord())
  }

  #sendResult(connection: EngineConnection, { message, arrays, assembly }: ResultFrame): void {
    connection.send(message, arrays)
    const { key, status, omitted, error } = message
    const maskTokens = assembly?.rows.reduce((sum, { lossMask }) => sum + lossMask.reduce((count, bit) => count + bit, 0), 0) ?? 0
    this.report(key, 'sent', { rows: message.rows.length, maskTokens, omitted, ...(status === 'failed' && error && { error }) })
  }

  #end(submission: Submission, outcome: ChannelOutcome['outcome'], reason: TrainError): void {
    const { service, answers } = this.#options
    const { key } = submission
    this.#link.release(submission, reason)
    const release = () => answers.release(key)
    this.#table.end(key, service.cancel(key).then(release, release))
    this.report(key, outcome)
  }
}

function over({ key }: Submission): TrainError {
  return new TrainError('ROLLOUT_CLOSED', `Rollout "${key}" is over; nothing is sampled for it any more.`)
}
