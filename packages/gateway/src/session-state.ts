import { createHash } from 'node:crypto'
import type { Conversation, PreparedPrompt } from '@aworld-train/chat'
import {
  invocationId,
  maxInvocations,
  orderTrajectories,
  type SessionRequest,
  TrainError,
  type Trajectory,
  type Turn,
} from '@aworld-train/core'
import type { ActiveCall } from './active-call.ts'
import { type Budget, createBudget } from './budget.ts'
import { createResponseMemory, type ResponseMemory } from './dialects/responses/memory.ts'
import { badRequest } from './failure.ts'
import type { Model, ModelTable, TokenModel } from './models/model-table.ts'
import { maxPromptBytes } from './models/size-limits.ts'
import { createRecordTokens, type RecordTokens } from './pass-through/record-tokens.ts'
import type { Recorder } from './pass-through/recorder.ts'

/** The state of one invocation of an agent in one attempt. */
export interface AgentState {
  /** Id of the invocation, which is the agent's name for its first one. */
  readonly id: string
  /** Name of the agent. */
  readonly name: string
  readonly trainable: boolean
  /** The prefix of every id in its answers. */
  readonly idPrefix: string
  /** The model of calls that name no other. Turns of these calls carry no model name. */
  readonly home: Model
  /** Whether the session fixes the agent's model, so that the model in a request does not matter. */
  readonly fixed: boolean
  /** The clock of its prompts. */
  now: Date
  /** Conversations by model, because one model cannot continue the ids of another. */
  conversations: Map<string, Conversation>
  turns: Turn[]
  /** Answers of chat engines, by model. */
  answers: Map<string, AnswerRecord>
  /** Numbers of answer records that no later call joins. */
  readonly over: number[]
  /** Number of calls that have arrived, which is the index of the next one in its random key. */
  arrivals: number
  /** How often each prompt was asked, by its number; `null` where calls are told apart by their arrival. */
  readonly promptCounts: Map<number, number> | null
  /** Prompts whose answers are being sampled. */
  readonly underway: Set<PreparedPrompt>
  /** Number of calls to third parties that were translated. */
  frozenCalls: number
  /** Keeps answers that later calls of the agent may refer to. */
  readonly memory: ResponseMemory
}

/** The answers of a chat engine in one record. */
export interface AnswerRecord {
  /** The recorder's number for the record. */
  readonly id: number
  readonly tokens: RecordTokens
  readonly turns: Turn[]
  /** Indexes among those turns, by the recorder's number of their call. */
  readonly indexes: Map<number, number>
}

/** The state of one attempt. */
export interface SessionState {
  readonly request: SessionRequest
  /** By the id of the invocation. Every agent has its first one from the start. */
  readonly agents: Map<string, AgentState>
  readonly calls: Set<ActiveCall>
  /** Turns recorded, and calls that are on the way to one. */
  turnsTaken: number
  sampledTokens: number
  /** Token budget for calls to chat engines. */
  readonly tokenBudget: Budget
  /** Prompt and completion tokens of third parties. */
  frozenTokens: number
  /** US dollars paid to third parties. */
  cost: number
  /** The budgets of calls to third parties, in tokens and in US dollars. */
  readonly frozenTokenBudget: Budget
  readonly costBudget: Budget
  /** Tokens of the longest answer of a third party. */
  longestFrozenAnswer: number
  /** Calls that a third party's load holds back. */
  waitingCalls: number
  failure: TrainError | null
  /** Number of answers that were sent and are still being read. */
  recordings: number
  /** The error of an answer that came without its tokens. Later calls are refused, because they could not be trained either. */
  unreadable: TrainError | null
  /** Whether no new call may begin. */
  closing: boolean
  /** Whether the final record has been handed out, so that nothing is added to it. */
  sealed: boolean
}

/** The budget if no limit is set. */
const none = Number.POSITIVE_INFINITY

/**
 * Throws GATEWAY_BAD_REQUEST for two agents of one name, GATEWAY_MODEL_UNKNOWN for an agent whose model does not exist, CONFIG_INVALID for
 * an agent that should be trained and cannot be, and the error of a model that is not ready yet.
 */
export function createSessionState(request: SessionRequest, models: ModelTable): SessionState {
  const now = new Date()
  const agents = new Map<string, AgentState>()
  for (const [index, agent] of request.agents.entries()) {
    const { name, trainable } = agent
    if (agents.has(name)) throw badRequest(`Two agents are named ${JSON.stringify(name)}; give each its own name.`, `agents.${index}.name`)
    const home = models.home(request, agent)
    const isFrozen = home.kind === 'frozen'
    if (trainable && isFrozen && !home.evaluated) {
      const message = `Agent "${name}" is trainable, but its model "${home.name}" is a third party's; set trainable to false, or give it another model.`
      throw new TrainError('CONFIG_INVALID', message)
    }
    if (home.kind === 'token') void home.chat
    const promptCounts = agent.randomKey === 'prompt' ? new Map<number, number>() : null
    agents.set(
      name,
      createAgentState(request, name, {
        name,
        trainable: trainable && !isFrozen,
        home,
        fixed: agent.model !== undefined,
        now,
        promptCounts,
      }),
    )
  }
  const { maxSessionTokens = none, maxFrozenTokens = none, maxCost = none } = request
  const state: SessionState = {
    request,
    agents,
    calls: new Set(),
    turnsTaken: 0,
    sampledTokens: 0,
    tokenBudget: createBudget(maxSessionTokens, () => state.sampledTokens),
    frozenTokens: 0,
    cost: 0,
    frozenTokenBudget: createBudget(maxFrozenTokens, () => state.frozenTokens),
    costBudget: createBudget(maxCost, () => state.cost),
    longestFrozenAnswer: 0,
    waitingCalls: 0,
    failure: null,
    recordings: 0,
    unreadable: null,
    closing: false,
    sealed: false,
  }
  return state
}

function createAgentState(
  { rollout, attempt }: SessionRequest,
  id: string,
  agent: Pick<AgentState, 'name' | 'trainable' | 'home' | 'fixed' | 'now' | 'promptCounts'>,
): AgentState {
  const identity = JSON.stringify([rollout, attempt, id])
  return {
    ...agent,
    id,
    idPrefix: createHash('sha256').update(identity).digest('hex').slice(0, 12),
    conversations: new Map(),
    turns: [],
    answers: new Map(),
    over: [],
    arrivals: 0,
    underway: new Set(),
    frozenCalls: 0,
    memory: createResponseMemory(),
  }
}

/** The state of the invocation at `place` of an agent, made at its first call. Throws AGENT_LIMIT beyond `maxInvocations` of one attempt. */
export function stateAt(session: SessionState, first: AgentState, place: string): AgentState {
  if (place === '') return first
  const { agents, request } = session
  const { name, trainable, home, fixed, now } = first
  const id = invocationId(
    request.agents.map((agent) => agent.name),
    name,
    place,
  )
  const existing = agents.get(id)
  if (existing && existing.name !== name)
    throw badRequest(
      `The place ${JSON.stringify(place)} of agent "${name}" has the id of another agent, "${id}"; rename that agent, or choose another place.`,
    )
  if (existing) return existing
  if (agents.size >= maxInvocations) {
    const message = `Rollout "${request.rollout}" has ${maxInvocations} invocations of agents, which is the most; make its agents ask each other less often.`
    session.failure ??= new TrainError('AGENT_LIMIT', message, { details: { stopReason: 'turn-limit' } })
    throw session.failure
  }
  const state = createAgentState(request, id, { name, trainable, home, fixed, now, promptCounts: first.promptCounts && new Map() })
  agents.set(id, state)
  return state
}

/** The record that a call continues and is added to, even where a later call begins a new one. */
export interface AgentRecord {
  readonly agent: AgentState
  readonly turns: Turn[]
  readonly conversation: Conversation
}

/** The turns that a call joins. Beyond `maxKeptTurns` a new record begins. */
export function holdTurns(agent: AgentState, { request }: SessionState): Turn[] {
  if (request.maxKeptTurns !== undefined && agent.turns.length >= request.maxKeptTurns) {
    agent.turns = []
    agent.conversations = new Map()
    for (const { id } of agent.answers.values()) agent.over.push(id)
    agent.answers = new Map()
    agent.now = new Date()
  }
  return agent.turns
}

export function holdRecord(agent: AgentState, session: SessionState, model: TokenModel, ignore: readonly RegExp[]): AgentRecord {
  const { name, chat } = model
  const turns = holdTurns(agent, session)
  let conversation = agent.conversations.get(name)
  if (!conversation) {
    conversation = chat.createConversation({ now: agent.now, maxPromptBytes: maxPromptBytes(model), ignore })
    agent.conversations.set(name, conversation)
  }
  return { agent, turns, conversation }
}

/** Like `holdRecord`, for a model whose server renders prompts. */
export function holdAnswers(agent: AgentState, session: SessionState, model: Model, recorder: Recorder): AnswerRecord {
  const turns = holdTurns(agent, session)
  let answers = agent.answers.get(model.name)
  if (!answers) {
    answers = { id: recorder.newRecord(), tokens: createRecordTokens(), turns, indexes: new Map() }
    agent.answers.set(model.name, answers)
  }
  return answers
}

/** The model name that a turn carries; none if the agent's own policy answered. */
export function turnModel(agent: AgentState, { name }: Model): { model?: string } {
  return name === agent.home.name ? {} : { model: name }
}

export function toTrajectories({ agents, request }: SessionState): Trajectory[] {
  const trajectories = Array.from(agents.values(), ({ id, name, fixed, home, trainable, turns }) => ({
    version: 2 as const,
    id,
    agent: name,
    policy: fixed ? home.name : request.policy,
    trainable,
    startedBy: [],
    timing: null,
    turns: turns.slice(),
  }))
  return orderTrajectories(
    trajectories,
    request.agents.map(({ name }) => name),
  )
}

function turnLimit({ request }: SessionState): TrainError {
  const message = `Rollout "${request.rollout}" has made its ${request.maxTurns} model calls; raise maxTurns, or make the agent stop earlier.`
  return new TrainError('AGENT_LIMIT', message, { details: { stopReason: 'turn-limit' } })
}

export function tokenLimit({ request }: SessionState): TrainError {
  const message = `Rollout "${request.rollout}" has sampled its ${request.maxSessionTokens} tokens; raise maxTokens, or make the agent stop earlier.`
  return new TrainError('AGENT_LIMIT', message, { details: { stopReason: 'token-limit' } })
}

/** Throws AGENT_LIMIT if the budget allows no further call. */
export function checkBudget(session: SessionState): void {
  const { maxTurns = Number.POSITIVE_INFINITY, maxSessionTokens = Number.POSITIVE_INFINITY } = session.request
  if (session.turnsTaken >= maxTurns) throw turnLimit(session)
  if (session.sampledTokens >= maxSessionTokens) throw tokenLimit(session)
  // Clients repeat a call whatever its answer says, but the rollout has failed.
  if (session.failure?.details?.['waitedMs'] !== undefined) throw session.failure
}

/** A call of the session begins to be held back for load, or is held back no more. */
export function noteWait(session: SessionState, waits: boolean): void {
  const before = session.waitingCalls
  session.waitingCalls += waits ? 1 : -1
  if (before === 0 || session.waitingCalls === 0) session.request.onWait?.(waits)
}

/** Throws AGENT_LIMIT if a budget for third parties is spent. */
export function checkFrozenBudget({ request, frozenTokens, cost }: SessionState): void {
  const { rollout, maxFrozenTokens = Number.POSITIVE_INFINITY, maxCost = Number.POSITIVE_INFINITY } = request
  const spent = (what: string, option: string) =>
    new TrainError(
      'AGENT_LIMIT',
      `Rollout "${rollout}" has used its ${what} of third parties; raise ${option}, or make the agent ask less.`,
      {
        details: { stopReason: 'cost-limit' },
      },
    )
  if (frozenTokens >= maxFrozenTokens) throw spent(`${maxFrozenTokens} tokens`, 'maxFrozenTokens')
  if (cost >= maxCost) throw spent(`${maxCost} US dollars`, 'maxCost')
}

/** Marks turn `index` and those before it as delivered, because a later request contains the answer of that turn. */
export function markDelivered(turns: readonly Pick<Turn, 'delivered' | 'parent'>[], index: number | null): void {
  for (let turn = index === null ? undefined : turns[index]; turn; turn = turn.parent === null ? undefined : turns[turn.parent]) {
    if (turn.delivered === 'delivered') return
    turn.delivered = 'delivered'
  }
}
