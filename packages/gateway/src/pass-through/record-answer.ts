import type { ChatCallOutcome } from '@aworld-train/core'
import { type FinishReason, type Sampling, TrainError, type Turn, toTrainError } from '@aworld-train/protocol'
import { add } from '../counters.ts'
import type { ChatModelRoute } from '../models/model-table.ts'
import type { ServedCall } from '../serve-call.ts'
import { type AnswerRecord, holdAnswers, markDelivered, tokenLimit } from '../session-state.ts'
import type { AnswerSink } from './pass-on.ts'
import { type RecordedTurn, toTurns } from './recorded-turn.ts'

export interface RecordAnswerOptions {
  readonly model: ChatModelRoute
  /** The request in Chat Completions. */
  readonly request: Buffer
  /** Fields that the request had in another dialect, as JSON. */
  readonly unusedFields: Buffer
  readonly sink: AnswerSink
  /** `null` where the call ended before the engine said how it went. */
  readonly outcome: ChatCallOutcome | null
  readonly sampling: Sampling
  readonly startedAt: number
  /** Of the weights, when the engine was asked. */
  readonly versionBefore: number
  readonly abandoned: boolean
  /** Why the answer may stop in its middle. */
  readonly broken: FinishReason | null
  /** The server chose among fewer tokens than the policy has. */
  readonly constrained: boolean
}

/** Hears when a turn is durable, or why there is none. */
export type Recorded = (error: TrainError | null) => void

/** Has an answer read and adds its turn to the session; POLICY_RESPONSE_INVALID where it holds no tokens. */
export function recordAnswer(served: ServedCall, given: RecordAnswerOptions, done: Recorded): void {
  const { parts, session, agent } = served.options
  const { model, request, unusedFields, sink, outcome, sampling, startedAt, versionBefore, abandoned, broken, constrained } = given
  const { recorder } = parts
  const answers = holdAnswers(agent, session, model, recorder)
  if (agent.over.length > 0) for (const record of agent.over.splice(0)) recorder.forget(record)
  const job = {
    record: answers.id,
    reader: model.engine.reader,
    contentType: sink.contentType,
    request,
    unusedFields,
    answer: sink.chunks,
    logprobs: constrained ? 'processed' : model.engine.logprobs,
    sampling,
    startedAt,
    endedAt: Date.now(),
    versions: outcome?.weightVersions ?? [versionBefore, model.engine.weightVersion()],
    abandoned,
    broken,
  }
  recorder.read(job, (read, error) => {
    if (read && !session.sealed) {
      addTurn(served, answers, read, done)
      return
    }
    if (error && !abandoned && error.code === 'POLICY_RESPONSE_INVALID') session.unreadable ??= error
    done(error ?? new TrainError('GATEWAY_FAILED', 'The session ended before the answer was read.'))
  })
  // A call waits to know what this one has sampled.
  if (session.tokenBudget.waiting() > 0) recorder.flush()
}

function addTurn({ options, progress }: ServedCall, answers: AnswerRecord, read: RecordedTurn, done: Recorded): void {
  const { parts, session, agent, observed } = options
  const { counters } = parts
  session.sampledTokens += read.completionTokens
  counters.sampledTokens += read.completionTokens
  if (read.branchReason) add(counters.branches, read.branchReason)
  else counters.continuations++
  const { list } = answers.recorded
  list[read.index] = read
  const turn = agent.onlyRecorded ? null : toTurn(answers, read)
  markDelivered(turn ? answers.turns : list, (turn ?? read).parent)
  progress.turn = turn ?? read
  if (turn) observed.recorded(turn)
  else observed.counted(read, () => toTurns(answers.recorded, read.index).at(-1)!)
  const budget = session.request.maxTokens ?? Number.POSITIVE_INFINITY
  if (read.cutByLength && session.sampledTokens >= budget) session.failure ??= tokenLimit(session)
  const kept = turn && session.request.onTurn?.(agent.name, turn)
  if (kept)
    kept.then(
      () => done(null),
      (cause: unknown) => done(toTrainError(cause, 'STORE_FAILED')),
    )
  else done(null)
}

/** The turn of an agent that has others beside those of the record: its index is that among all of them. */
function toTurn({ recorded, indexes, turns }: AnswerRecord, read: RecordedTurn): Turn {
  const turn = read.toTurn(recorded.tokens)
  turn.index = turns.length
  turn.parent = read.parent === null ? null : (indexes[read.parent] ?? null)
  indexes[read.index] = turn.index
  turns.push(turn)
  return turn
}
