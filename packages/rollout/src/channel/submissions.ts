import { type ChannelSubmit, parseChannelKey, type RolloutRequest, type RolloutState, TrainError, toTrainError } from '@aworld-train/core'
import type { ChannelConnection } from './channel-connection.ts'
import type { ChannelOutcome, ChannelServerOptions } from './channel-types.ts'
import type { ClientSession } from './client-sessions.ts'
import { requireOwnKey, toRolloutRequest } from './to-request.ts'
import { type ResultFrame, toFailedResult, toResult } from './to-result.ts'

type Options = Pick<
  ChannelServerOptions,
  'service' | 'engine' | 'answers' | 'toTask' | 'solution' | 'onOutcome' | 'maxCompletionTokens' | 'incompleteEpisodes'
> &
  Required<Pick<ChannelServerOptions, 'rows' | 'reward' | 'graceMs'>> & { readonly rolloutTimeoutMs: number | null }

/** A rollout that a trainer client waits for. */
interface Submission {
  readonly key: string
  readonly submit: ChannelSubmit
  session: ClientSession
  /** The connection that submitted it last; `null` when that was lost. */
  connection: ChannelConnection | null
  isStarted: boolean
}

type Ending = Pick<RolloutState, 'status' | 'episode' | 'error'>

/** Submissions of trainer clients, each kept until its result. */
export interface Submissions {
  submit(session: ClientSession, submit: ChannelSubmit): void
  cancel(session: ClientSession, key: string, reason: string): void
  /** Its rollouts wait for the next connection of their trainer client, for the grace period. */
  leave(connection: ChannelConnection): number
  /** Cancels every submission of a worker, because a newer start of its run is connected. */
  supersede(session: ClientSession): void
  started(key: string): void
  report(key: string, outcome: ChannelOutcome['outcome'], more?: Partial<ChannelOutcome>): void
  /** Whether a worker waits for anything. */
  has(session: ClientSession): boolean
  open(): number
  close(): Promise<void>
}

export function createSubmissions(options: Options): Submissions {
  const { service, engine, answers, toTask, solution, rows, reward, graceMs, rolloutTimeoutMs, onOutcome } = options
  const submissions = new Map<string, Submission>()
  /** Rollouts that are being cancelled, by key. */
  const ending = new Map<string, Promise<void>>()
  const graces = new Set<NodeJS.Timeout>()

  function report(key: string, outcome: ChannelOutcome['outcome'], more: Partial<ChannelOutcome> = {}): void {
    const parts = parseChannelKey(key)
    if (!parts) return
    const { run, incarnation, partition } = parts
    onOutcome?.({ key, run, incarnation, partition, outcome, ...more })
  }

  function requestOf({ hello }: ClientSession, submit: ChannelSubmit): RolloutRequest {
    requireOwnKey(submit, hello)
    const { task, answer, kind } = toTask(submit.row, submit)
    answers.hold(submit.key, answer)
    return toRolloutRequest(submit, {
      hello,
      task,
      kind,
      policy: engine.name,
      rolloutTimeoutMs,
      maxCompletionTokens: options.maxCompletionTokens,
    })
  }

  function sendResult(connection: ChannelConnection, { message, arrays, assembly }: ResultFrame): void {
    connection.send(message, arrays)
    const { key, status, omitted, error } = message
    const maskTokens = assembly?.rows.reduce((sum, { lossMask }) => sum + lossMask.reduce((count, bit) => count + bit, 0), 0) ?? 0
    report(key, 'sent', { rows: message.rows.length, maskTokens, omitted, ...(status === 'failed' && error && { error }) })
  }

  function forget({ key }: Submission, reason: TrainError): void {
    submissions.delete(key)
    engine.link.release(key, reason)
  }

  function frameOf({ key, submit, session }: Submission, { status, episode, error }: Ending): ResultFrame {
    if (status === 'done' && episode) {
      const { limits } = session.hello
      return toResult(key, episode, {
        rows,
        limits,
        partition: submit.partition,
        reward,
        incompleteEpisodes: options.incompleteEpisodes,
        solution,
      })
    }
    const fallback = new TrainError('STORE_FAILED', `Rollout "${key}" ended as ${status} and left no episode; submit it again.`)
    return toFailedResult(key, error ?? fallback.toRecord())
  }

  function over({ key }: Submission): TrainError {
    return new TrainError('ROLLOUT_CLOSED', `Rollout "${key}" is over; nothing is sampled for it any more.`)
  }

  function settle(submission: Submission, ending: Ending, reason = over(submission)): void {
    if (submissions.get(submission.key) !== submission) return
    forget(submission, reason)
    answers.release(submission.key)
    // The end of the service cut it off; its trainer client submits it again when the service is back.
    if (ending.status === 'cancelled' && service.counts().stopping) return
    // Without a connection the result stays in the store until it is asked for again.
    if (submission.connection) sendResult(submission.connection, frameOf(submission, ending))
  }

  function refuse(submission: Submission, cause: unknown): void {
    const error = toTrainError(cause, 'ROLLOUT_INVALID')
    const status = error.code === 'ROLLOUT_CANCELLED' ? 'cancelled' : 'failed'
    settle(submission, { status, episode: null, error: error.toRecord() }, error)
  }

  function announce({ key, connection, isStarted }: Submission): void {
    connection?.send({ type: 'queued', key })
    if (isStarted) connection?.send({ type: 'started', key })
  }

  function begin(submission: Submission): void {
    try {
      const request = requestOf(submission.session, submission.submit)
      engine.link.connect(submission.key, submission.connection)
      const { status } = service.submit(request)
      submission.isStarted = status === 'running'
      if (status === 'queued' || status === 'running') announce(submission)
    } catch (cause) {
      refuse(submission, cause)
      return
    }
    const ended = service.wait(submission.key, { samples: false })
    ended.then((state) => settle(submission, state)).catch((cause) => refuse(submission, cause))
  }

  /** The same submission over a new connection, or of another worker of its trainer client. */
  function attach(existing: Submission, session: ClientSession, submit: ChannelSubmit): void {
    const { key } = submit
    try {
      service.submit(requestOf(session, submit))
    } catch (cause) {
      session.connection?.send(toFailedResult(key, toTrainError(cause, 'ROLLOUT_INVALID').toRecord()).message)
      return
    }
    existing.session = session
    existing.connection = session.connection
    announce(existing)
    engine.link.connect(key, existing.connection)
  }

  function end(submission: Submission, outcome: ChannelOutcome['outcome'], reason: TrainError): Promise<void> {
    const { key } = submission
    forget(submission, reason)
    const ended = service.cancel(key).then(
      () => {},
      () => {},
    )
    const done = ended.then(() => {
      answers.release(key)
      ending.delete(key)
    })
    ending.set(key, done)
    report(key, outcome)
    return done
  }

  return {
    submit(session, submit) {
      const { key } = submit
      const existing = submissions.get(key)
      if (existing) {
        attach(existing, session, submit)
        return
      }
      const submission: Submission = { key, submit, session, connection: session.connection, isStarted: false }
      submissions.set(key, submission)
      const before = ending.get(key)
      if (before) void before.then(() => submissions.get(key) === submission && begin(submission))
      else begin(submission)
    },
    cancel(session, key, reason) {
      const submission = submissions.get(key)
      if (submission?.session !== session) return
      void end(submission, 'cancelled', new TrainError('ROLLOUT_CANCELLED', `The trainer cancelled rollout "${key}": ${reason}.`))
    },
    leave(connection) {
      const abandoned = [...submissions.values()].filter((submission) => submission.connection === connection)
      for (const submission of abandoned) submission.connection = null
      if (abandoned.length === 0) return 0
      const grace = setTimeout(() => {
        graces.delete(grace)
        for (const submission of abandoned) {
          if (submission.connection || submissions.get(submission.key) !== submission) continue
          const message = `The connection that submitted rollout "${submission.key}" was lost, and the trainer did not come back in ${graceMs} ms.`
          void end(submission, 'lost', new TrainError('CHANNEL_LOST', message))
        }
      }, graceMs)
      graces.add(grace)
      return abandoned.length
    },
    supersede(session) {
      for (const submission of submissions.values()) {
        if (submission.session !== session) continue
        const message = `A newer start of run "${session.hello.run}" has taken over from the one that submitted rollout "${submission.key}".`
        void end(submission, 'superseded', new TrainError('CHANNEL_SUPERSEDED', message))
      }
    },
    started(key) {
      const submission = submissions.get(key)
      if (!submission || submission.isStarted) return
      submission.isStarted = true
      submission.connection?.send({ type: 'started', key })
    },
    report,
    has: (session) => [...submissions.values()].some((submission) => submission.session === session),
    open: () => submissions.size,
    async close() {
      for (const grace of graces) clearTimeout(grace)
      graces.clear()
      const reason = new TrainError('ROLLOUT_CANCELLED', 'The rollout service stopped; submit the rollout again when it is back.')
      await Promise.all([...Array.from(submissions.values(), (submission) => end(submission, 'lost', reason)), ...ending.values()])
    },
  }
}
