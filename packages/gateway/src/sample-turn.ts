import type { RunWork } from '@aworld-train/chat'
import type { Constraint } from '@aworld-train/core'
import type { ActiveCall } from './active-call.ts'
import { affinityOf } from './affinity.ts'
import type { AnswerHead, Completion, ModelCall } from './call.ts'
import { add } from './counters.ts'
import { effectiveSampling } from './effective-sampling.ts'
import type { TokenModel } from './models/model-table.ts'
import { promptNumber, toRandomKey } from './random-key.ts'
import { responseRoom } from './response-room.ts'
import { keepTurn, type Progress, type ServeCallOptions } from './served-call.ts'
import { checkBudget, holdRecord, tokenLimit } from './session-state.ts'
import { type Answer, createAnswer } from './stages/encode.ts'
import { generate } from './stages/generate.ts'
import { createTurnParser, type TurnParser } from './stages/parse.ts'
import { prepare } from './stages/prepare.ts'
import { record } from './stages/record.ts'

/** Problems of calls that were delivered as text of the answer. */
const malformed: ReadonlySet<string> = new Set(['call-invalid', 'call-unclosed', 'open-missing'])

/** A call whose turn is recorded and durable, and the way to answer it. */
export interface SampledTurn {
  readonly completion: Completion
  readonly answer: Answer
}

/** Handles each sampled piece: counts it, parses it, streams it, and stops the completion at a stop string or at the end of the budget. */
function createPieceHandler(
  { parts, session, observed }: ServeCallOptions,
  { engine }: TokenModel,
  active: ActiveCall,
  parser: TurnParser,
  answer: Answer,
  limit: number,
) {
  const budget = session.request.maxSessionTokens ?? Number.POSITIVE_INFINITY
  let count = 0
  return (tokenIds: Int32Array, logprobs: Float32Array) => {
    if (count === 0) observed.firstToken()
    count += tokenIds.length
    session.sampledTokens += tokenIds.length
    parts.counters.sampledTokens += tokenIds.length
    const deltas = parser.read(tokenIds)
    if (active.lost() === null) answer.piece({ deltas, tokenIds, logprobs })
    if (parser.stopped()) active.cut('stop-string')
    if (session.sampledTokens < budget) return
    const endsHere = count >= limit || engine.model.stopTokenIds.includes(tokenIds.at(-1) ?? -1)
    for (const call of session.calls) if (call !== active || !endsHere) call.cut('token-limit')
  }
}

/** A call that has passed the gate. */
export interface AdmittedCall {
  readonly model: TokenModel
  readonly call: ModelCall
  readonly constraint: Constraint | undefined
  readonly active: ActiveCall
  /** Index of the call among those of its agent. */
  readonly arrival: number
  /** Runs work that takes long for a large call. */
  readonly run: RunWork
  readonly progress: Progress
}

/** Matches, renders, generates, parses and records. Resolves when the turn is durable. Sampled tokens are recorded even if it rejects. */
export async function sampleTurn(options: ServeCallOptions, admitted: AdmittedCall): Promise<SampledTurn> {
  const { model, call, constraint, active, arrival, run, progress } = admitted
  const { parts, session, dialect, response } = options
  const { counters, limits } = parts
  const { engine, chat, policy } = model
  const { request } = session
  checkBudget(session)
  session.turnsTaken++
  const { agent } = options
  const agentRecord = holdRecord(agent, session, model, parts.ignore)
  const prepared = await prepare({ agentRecord, call, model, parts, session, run, signal: active.signal }).catch((cause) => {
    session.turnsTaken--
    throw cause
  })
  const sampling = effectiveSampling(request.sampling, {
    maxTokens: call.maxTokens,
    stop: call.stop,
    contextRoom: engine.model.contextLength - prepared.promptTokenIds.length,
    responseRoom: responseRoom(agentRecord.turns, prepared, request),
    budgetRoom: (request.maxSessionTokens ?? Number.POSITIVE_INFINITY) - session.sampledTokens,
  })
  const mintToolCallId = (index: number) => `call_${agent.idPrefix}_${arrival}_${index}`
  const parser = createTurnParser({ chat, call, prepared, stop: sampling.stop, mintToolCallId })
  const head: AnswerHead = {
    id: `${agent.idPrefix}-${arrival}`,
    created: Math.floor(Date.now() / 1000),
    model: model.name,
    call,
    promptTokenIds: prepared.promptTokenIds,
    tokenText: (id) => chat.decode([id], { skipSpecialTokens: false }),
    memory: agent.memory,
  }
  const answer = createAnswer(dialect, head, response)
  progress.answer = answer

  const generation = await generate({
    engine,
    request: {
      promptTokenIds: prepared.promptTokenIds,
      sampling,
      constraint,
      random: toRandomKey(
        parts.seed,
        request,
        agent,
        agent.promptCounts ? promptNumber(prepared.promptTokenIds, agent.promptCounts) : arrival,
      ),
      affinity: affinityOf(request, agent, () => call.messages.find(({ role }) => role === 'user')?.content ?? ''),
      origin: { rollout: request.rollout, attempt: request.attempt, agent: agent.name, trajectory: agent.id },
      policy,
      traceHeaders: options.observed.traceHeaders(),
    },
    call: active,
    graceMs: limits.abortGraceMs,
    onPiece: createPieceHandler(options, model, active, parser, answer, sampling.maxTokens),
  }).finally(() => agent.underway.delete(prepared))
  const { unified } = generation.finishReason
  const failed = unified === 'error' || unified === 'aborted'
  const nothing = generation.tokenIds.length === 0 && (failed || active.wasCut() !== null)
  if (session.sealed || nothing) {
    session.turnsTaken--
    throw generation.error ?? active.signal.reason
  }

  const parsed = parser.finish(generation.tokenIds, generation.finishReason)
  for (const issue of parsed.issues) add(counters.parseIssues, issue)
  const abandoned = failed || active.lost() !== null
  const recorded = { agentRecord, model, call, attempt: request.attempt, prepared, generation, parsed, sampling, constraint, abandoned }
  const turn = record({ ...recorded, callKind: parts.callKind })
  if (unified === 'length' && session.sampledTokens >= (request.maxSessionTokens ?? Number.POSITIVE_INFINITY))
    session.failure ??= tokenLimit(session)
  await keepTurn({ options, progress }, turn)
  if (generation.error) throw generation.error
  if (parsed.deltas.length > 0) answer.piece({ deltas: parsed.deltas, tokenIds: [], logprobs: [] })
  const { message, finishReason, completionTokenIds, rolloutLogprobs, usage } = turn
  const { stopSequence } = parsed
  const isMalformedCall =
    model.malformedCalls === 'tool-error' && unified === 'stop' && !message.toolCalls && parsed.issues.some((issue) => malformed.has(issue))
  const completion = {
    message,
    finishReason,
    tokenIds: completionTokenIds,
    logprobs: rolloutLogprobs,
    usage,
    stopSequence,
    isMalformedCall,
  }
  return { completion, answer }
}
