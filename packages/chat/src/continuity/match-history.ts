import type { Message } from '@aworld-train/core'
import type { Divergence } from '../types.ts'
import { CallIds, type DeliveredCalls, type MatchRules, matchAnswer, matchMessage, type Tolerance } from './match-message.ts'
import type { ConversationTurn } from './skeleton-rule.ts'

export interface HistoryMatch {
  readonly turn: ConversationTurn
  readonly tolerated: readonly Tolerance[]
  /** The messages after the recorded conversation, with our ids of calls. */
  readonly rest: readonly Message[]
}

export interface MatchOptions extends MatchRules {
  readonly roots: readonly ConversationTurn[]
  readonly calls: DeliveredCalls
  readonly isAbandoned: (turn: number) => boolean
  /** Whether a call that continues the turn is being answered. */
  readonly isContinued: (turn: number) => boolean
  /** A recorded turn without text and calls may be missing from the messages. */
  readonly withoutEmptyTurns: boolean
}

interface Candidate {
  readonly turn: ConversationTurn
  readonly tolerated: readonly Tolerance[]
  readonly ids: CallIds
  /** Number of received messages that match the recorded ones. */
  readonly used: number
}

/**
 * Finds the deepest recorded turn whose messages begin the received ones. Among several, a turn that its client received is preferred, then
 * the one that differs least, then one that no call continues yet, then the latest.
 */
export function matchHistory(messages: readonly Message[], options: MatchOptions): HistoryMatch | null {
  let best: Candidate | null = null
  const open = options.roots.map((turn) => ({ turn, from: 0, before: [] as readonly Tolerance[], ids: new CallIds(options.calls) }))
  for (let next = open.pop(); next; next = open.pop()) {
    const { turn, from, before } = next
    const found = matchTurn(turn, messages, from, next.ids.fork(), options)
    if (!found) continue
    const tolerated = found.tolerated.length === 0 ? before : [...before, ...found.tolerated]
    const candidate: Candidate = { turn, tolerated, ids: found.ids, used: found.used }
    if (best === null || better(candidate, best, options)) best = candidate
    for (const child of turn.children) open.push({ turn: child, from: found.used, before: tolerated, ids: found.ids })
  }
  if (best === null) return null
  const { turn, tolerated, ids, used } = best
  return { turn, tolerated, rest: messages.slice(used).map((message) => ids.translate(message)) }
}

function matchTurn(
  turn: ConversationTurn,
  received: readonly Message[],
  from: number,
  ids: CallIds,
  options: MatchOptions,
): { tolerated: readonly Tolerance[]; ids: CallIds; used: number } | null {
  const tolerated: Tolerance[] = []
  const last = turn.messages.length - 1
  for (const [index, message] of turn.messages.slice(0, last).entries()) {
    const other = received[from + index]
    const found = other && matchMessage(message, other, ids, false, options)
    if (!found) return null
    for (const kind of found) tolerated.push(kind)
  }
  const at = from + last
  const other = received[at]
  const answer = matchAnswer(turn.delivered, received, at, ids, options)
  if (answer) return { tolerated: [...tolerated, ...answer.tolerated], ids, used: at + answer.count }
  const dropped = options.withoutEmptyTurns && other !== undefined && other.role !== 'assistant' && isEmpty(turn.delivered)
  return dropped ? { tolerated: [...tolerated, 'empty-turn'], ids, used: at } : null
}

function better(candidate: Candidate, best: Candidate, { isAbandoned, isContinued }: MatchOptions): boolean {
  if (candidate.turn.depth !== best.turn.depth) return candidate.turn.depth > best.turn.depth
  const [lost, bestLost] = [isAbandoned(candidate.turn.index), isAbandoned(best.turn.index)]
  if (lost !== bestLost) return bestLost
  if (candidate.tolerated.length !== best.tolerated.length) return candidate.tolerated.length < best.tolerated.length
  // Conversations with equal messages are told apart by what continues them, so that each keeps a branch of its own.
  const isTaken = ({ index, children }: ConversationTurn) => isContinued(index) || children.some((child) => !isAbandoned(child.index))
  const [taken, bestTaken] = [isTaken(candidate.turn), isTaken(best.turn)]
  if (taken !== bestTaken) return bestTaken
  return candidate.turn.index > best.turn.index
}

/** Whether a turn has neither text nor calls, so that clients leave it out of the next request. */
export const isEmpty = ({ content, toolCalls = [] }: Message): boolean => (content ?? '').trim() === '' && toolCalls.length === 0

/**
 * The first difference between a request that contains a recorded answer and the recorded messages before that answer.
 * The latest such answer counts.
 */
export function findDivergence(
  messages: readonly Message[],
  turns: Iterable<ConversationTurn>,
  { calls, ...rules }: Pick<MatchOptions, 'calls' | keyof MatchRules>,
): Divergence | null {
  let found: ConversationTurn | null = null
  for (const turn of turns) {
    const counterpart = messages[turn.depth - 1]
    if (isEmpty(turn.delivered) || !counterpart || !matchMessage(turn.delivered, counterpart, new CallIds(calls), true, rules)) continue
    if (found === null || turn.depth >= found.depth) found = turn
  }
  if (found === null) return null
  const ids = new CallIds(calls)
  const recorded = historyOf(found)
  const sampled = new Set(pathTo(found).map(({ delivered }) => delivered))
  const index = recorded.findIndex((message, at) => !matchMessage(message, messages[at]!, ids, sampled.has(message), rules))
  const [before, after] = [recorded[index], messages[index]]
  if (!before || !after) return null
  return { index, role: after.role, ...differingTexts(before.content ?? '', after.content ?? '') }
}

/** The messages up to a recorded turn, its own last. */
export function historyOf(turn: ConversationTurn): readonly Message[] {
  return pathTo(turn).flatMap(({ messages }) => messages)
}

/** Recorded turns from the root to `turn`. */
export function pathTo(turn: ConversationTurn): readonly ConversationTurn[] {
  const path: ConversationTurn[] = []
  for (let current: ConversationTurn | null = turn; current; current = current.matched) path.push(current)
  return path.reverse()
}

const shownBefore = 20
const shown = 80

function differingTexts(recorded: string, received: string): Pick<Divergence, 'recorded' | 'received'> {
  const limit = Math.min(recorded.length, received.length)
  let at = 0
  while (at < limit && recorded.charCodeAt(at) === received.charCodeAt(at)) at += 1
  const from = Math.max(0, at - shownBefore)
  const excerpt = (text: string) => text.slice(from, from + shown).toWellFormed()
  return { recorded: excerpt(recorded), received: excerpt(received) }
}
