import { GrowingTokens, type Message, type ToolCall, TrainError } from '@aworld-train/core'
import { endsInReasoning, type ReasoningTags } from '../reasoning-tags.ts'
import type { ChatRenderer, ToolSet } from '../render/chat-renderer.ts'
import { RenderingTooLong } from '../render/compile-template.ts'
import { contentText } from '../render/template-messages.ts'
import { forcedPrefix } from '../syntax/forced-prefix.ts'
import type { ToolCallSyntax } from '../syntax/syntax.ts'
import type { Conversation, ForcedCall, HistoryMode, PreparedPrompt, PrepareRequest, RecordedResult } from '../types.ts'
import { encodeByTurns } from './encode-by-turns.ts'
import { createMarks, type Marks } from './marks.ts'
import { findDivergence, type HistoryMatch, historyOf, isEmpty, matchHistory, pathTo } from './match-history.ts'
import { CallIds } from './match-message.ts'
import { completed, cutBehindPrefill, type Prefill, splitPrefill, withMarkBehind, withPrefill } from './prefill.ts'
import { checkPromptSize, withinPromptSize } from './prompt-size.ts'
import { compareSkeletons, cutAtMark, endOf, type Skeleton } from './skeleton.ts'
import { type Continuation, type ConversationTurn, continuation, type RuleSettings } from './skeleton-rule.ts'

export interface ConversationSettings extends RuleSettings {
  readonly renderer: ChatRenderer
  readonly reasoning: ReasoningTags | null
  /** The policy's syntax of calls; `null` if it is not understood. */
  readonly syntax: ToolCallSyntax | null
  readonly history: HistoryMode
  readonly now: Date
  /** Rendered text of more bytes is refused. Sampled texts count as their marks. */
  readonly maxPromptBytes: number
  /** Text that a client may change between its requests, in messages of its own. */
  readonly ignore: readonly RegExp[]
}

/** The parts of a request, parsed once. */
interface RequestParts {
  /** The messages without prefill, as the client sent them. */
  readonly received: readonly Message[]
  readonly prefill: Prefill | null
  readonly tools: ToolSet
  readonly forced: ForcedCall | undefined
}

/** Data that a prompt keeps for the turns that are recorded with it. */
interface Memory extends Pick<RequestParts, 'prefill' | 'tools'> {
  readonly tokens: GrowingTokens
}

/** A decision to continue, with its inputs. */
interface Continued {
  readonly match: HistoryMatch
  readonly messages: readonly Message[]
  readonly tools: ToolSet
  /** The rendering with marks in place of sampled texts, with and without the prefill. */
  readonly pieces: Skeleton
  readonly skeleton: Skeleton
  readonly decision: Continuation & { continues: true }
  readonly opening: string
}

export function createConversation(settings: ConversationSettings): Conversation {
  return new ConversationTree(settings)
}

class ConversationTree implements Conversation {
  readonly #settings: ConversationSettings
  readonly #marks: Marks = createMarks()
  readonly #turns = new Map<number, ConversationTurn>()
  readonly #roots: ConversationTurn[] = []
  /** All delivered calls, and the ids that the model itself wrote, by the delivered id. */
  readonly #calls = new Map<string, ToolCall>()
  readonly #sampledIds = new Map<string, string>()
  /** The memory of each prompt that `prepare` has returned. */
  readonly #memory = new WeakMap<PreparedPrompt, Memory>()
  #hasEmptyTurns = false

  constructor(settings: ConversationSettings) {
    this.#settings = { ...settings, now: new Date(settings.now) }
  }

  prepare(request: PrepareRequest): PreparedPrompt {
    const parts = this.#read(request)
    const { isAbandoned = never, isContinued = never } = request
    const options = { ...this.#rules(), roots: this.#roots, isAbandoned, isContinued }
    const match = matchHistory(parts.received, { ...options, withoutEmptyTurns: false })
    const reasons: string[] = []
    if (this.#hasEmptyTurns) {
      const deeper = matchHistory(parts.received, { ...options, withoutEmptyTurns: true })
      if (deeper && deeper.turn.depth > (match?.turn.depth ?? 0)) {
        const outcome = this.#continue(deeper, parts)
        if ('decision' in outcome) return this.#continued(outcome, parts)
        if (outcome.reasons.includes('empty-turn')) reasons.push(...outcome.reasons)
      }
    }
    if (!match) return this.#branch(null, parts, reasons.length > 0 ? reasons : [this.#turns.size === 0 ? 'root' : 'no-match'])
    const outcome = this.#continue(match, parts)
    return 'decision' in outcome ? this.#continued(outcome, parts) : this.#branch(match, parts, outcome.reasons)
  }

  record(turnIndex: number, prepared: PreparedPrompt, { tokenIds, message, promptCallIds = [] }: RecordedResult): void {
    if (this.#turns.has(turnIndex)) throw new Error(`Turn ${turnIndex} is already recorded.`)
    const memory = this.#memory.get(prepared)
    if (!memory) throw new Error(`Turn ${turnIndex} was prepared by another conversation.`)
    const matched = prepared.matched === null ? null : (this.#turns.get(prepared.matched) ?? null)
    const delivered = completed(memory.prefill, message)
    for (const [index, call] of (delivered.toolCalls ?? []).entries()) {
      this.#calls.set(call.id, call)
      const sampled = promptCallIds[index]
      if (sampled) this.#sampledIds.set(call.id, sampled)
    }
    if (isEmpty(delivered)) this.#hasEmptyTurns = true
    const turn: ConversationTurn = {
      index: turnIndex,
      matched,
      children: [],
      messages: [...prepared.messages.slice(matched?.depth ?? 0), delivered],
      depth: prepared.messages.length + 1,
      delivered,
      ...this.#marks.message(turnIndex, delivered),
      tools: memory.tools,
      skeleton: prepared.skeleton,
      tokens: memory.tokens,
      promptIds: prepared.promptTokenIds,
      sampledIds: tokenIds,
    }
    this.#turns.set(turnIndex, turn)
    const siblings = matched?.children ?? this.#roots
    siblings.push(turn)
  }

  #read({ messages, tools, toolsJson, forced }: PrepareRequest): RequestParts {
    const { messages: received, prefill } = splitPrefill(messages)
    // The size is checked before rendering, which takes longer. A template prints about as much text as the tools have.
    if (toolsJson !== undefined) checkPromptSize([toolsJson], this.#settings.maxPromptBytes)
    const toolSet = this.#settings.renderer.toolSet(tools, toolsJson)
    if (toolSet.value) requireCalls(this.#settings)
    return { received, prefill, tools: toolSet, forced }
  }

  #rules() {
    const { ignore, reasoning: tags } = this.#settings
    return { ignore, tags, calls: this.#calls }
  }

  /** The continuation of a match, or the reasons for which there is none. */
  #continue(match: HistoryMatch, parts: RequestParts): Continued | { readonly reasons: readonly string[] } {
    const { turn, tolerated, rest } = match
    const sameTools = turn.tools.key === parts.tools.key
    if (!sameTools && !areReordered(turn.tools.parts, parts.tools.parts)) return { reasons: ['tools'] }
    const path = pathTo(turn)
    const messages = [...path.flatMap((each) => each.messages), ...rest]
    const marked = [...path.flatMap(withMarks), ...rest]
    const rendered = unlessRaised(() => this.#render(marked, parts.prefill, turn.tools))
    if (rendered === null) return { reasons: ['raise'] }
    const compared = compareSkeletons(turn.skeleton, rendered)
    const { skeleton: pieces } = compared
    const skeleton = (parts.prefill && this.#beforePrefill(marked, parts.prefill, turn.tools)) ?? pieces
    const opening = this.#opening(pieces, parts)
    const decision = continuation(
      {
        turn,
        compared,
        appended: opening,
        rewrites: [...(sameTools ? [] : ['tools-order']), ...tolerated.filter((kind) => kind === 'empty-turn')],
        messages,
        sampledIds: this.#sampledIds,
        history: this.#settings.history,
      },
      this.#settings,
    )
    return decision.continues ? { match, messages, tools: turn.tools, pieces, skeleton, decision, opening } : decision
  }

  #continued({ match, messages, tools, pieces, skeleton, decision, opening }: Continued, { prefill }: RequestParts): PreparedPrompt {
    const { turn, tolerated } = match
    const prepared: PreparedPrompt = {
      ...this.#common({ messages, prefill, opening, pieces }),
      matched: turn.index,
      promptTokenIds: turn.promptIds,
      parent: turn.index,
      branchReasons: [],
      tolerated: tally([...tolerated, ...decision.tolerated]),
      messagesDelta: withPrefill(messages.slice(turn.depth), prefill),
      skeleton,
      divergence: null,
    }
    const { tokens, ids } = turn.tokens.extend(turn.promptIds.length, [turn.sampledIds, decision.suffix])
    return this.#remember({ ...prepared, promptTokenIds: ids }, { tokens, tools, prefill })
  }

  /** Renders a whole prompt that continues no turn, with recorded messages as they were delivered. */
  #branch(match: HistoryMatch | null, parts: RequestParts, reasons: readonly string[]): PreparedPrompt {
    const { received, prefill, tools } = parts
    const ids = new CallIds(this.#calls)
    const messages = match ? [...historyOf(match.turn), ...match.rest] : received.map((message) => ids.translate(message))
    const marked = match ? [...pathTo(match.turn).flatMap(withMarks), ...match.rest] : messages
    const pieces = this.#render(messages, prefill, tools)
    const skeleton = prefill ? this.#beforePrefill(marked, prefill, tools) : match && unlessRaised(() => this.#render(marked, null, tools))
    const opening = this.#opening(pieces, parts)
    const { tokenizer, stops } = this.#settings
    const prompt = new GrowingTokens().extend(0, [encodeByTurns(pieces.join('') + opening, tokenizer, stops)])
    const prepared: PreparedPrompt = {
      ...this.#common({ messages, prefill, opening, pieces }),
      matched: match?.turn.index ?? null,
      promptTokenIds: prompt.ids,
      parent: null,
      branchReasons: reasons,
      tolerated: tally(match?.tolerated ?? []),
      messagesDelta: withPrefill(messages, prefill),
      skeleton: skeleton ?? pieces,
      divergence: match || this.#turns.size === 0 ? null : findDivergence(received, this.#turns.values(), this.#rules()),
    }
    return this.#remember(prepared, { tokens: prompt.tokens, tools, prefill })
  }

  #common({ messages, prefill, opening, pieces }: Pick<Continued, 'messages' | 'opening' | 'pieces'> & Pick<RequestParts, 'prefill'>) {
    return {
      messages,
      prefill,
      forced: opening,
      reasoningOpen: endsInReasoning(endOf(pieces) + opening, this.#settings.reasoning),
    }
  }

  #remember(prepared: PreparedPrompt, memory: Memory): PreparedPrompt {
    this.#memory.set(prepared, memory)
    return prepared
  }

  /** Text that opens the forced call; empty if there is none. */
  #opening(pieces: Skeleton, { forced }: RequestParts): string {
    if (forced === undefined) return ''
    const { syntax, reasoning } = this.#settings
    const inReasoning = endsInReasoning(endOf(pieces), reasoning)
    const opening = syntax && forcedPrefix(syntax, forced, inReasoning ? reasoning : null)
    if (opening !== null) return opening
    const what = forced.kind === 'named' ? `a call of ${forced.name}` : 'a tool call'
    throw new TrainError('TEMPLATE_UNSUPPORTED', `The format of this model has no way to begin ${what} for it; set tool_choice to "auto".`)
  }

  /**
   * The pieces before the texts of `prefill`, which become part of the delivered message; `null` if the
   * template refuses marks in their place.
   */
  #beforePrefill(messages: readonly Message[], prefill: Prefill, tools: ToolSet): string[] | null {
    const { marked, marks } = this.#marks.prefill(prefill)
    const pieces = unlessRaised(() => this.#pieces([...messages, marked], tools, false))
    return pieces && cutAtMark(pieces, marks)
  }

  /** Renders a prompt in pieces, with its prefill at the end. Throws POLICY_CONTEXT_OVERFLOW for one of too many bytes. */
  #render(messages: readonly Message[], prefill: Prefill | null, tools: ToolSet): string[] {
    return withinPromptSize(this.#settings.maxPromptBytes, () => {
      if (prefill === null) return this.#pieces(messages, tools, true)
      const { end } = this.#marks
      const pieces = this.#pieces([...messages, withMarkBehind(prefill, end)], tools, false)
      const before = cutBehindPrefill(pieces, end, contentText(prefill, this.#settings.renderer.form))
      if (before !== null) return before
      throw new TrainError('GATEWAY_BAD_REQUEST', 'The chat template cannot continue a trailing assistant message; leave it out.')
    })
  }

  /** Renders the pieces of a prompt. Throws RenderingTooLong once there is more than a prompt may have. */
  #pieces(messages: readonly Message[], tools: ToolSet, addGenerationPrompt: boolean): string[] {
    const { renderer, now, maxPromptBytes } = this.#settings
    const sampledIds = this.#sampledIds.size === 0 ? undefined : this.#sampledIds
    const maxCharacters = maxPromptBytes + cutCharacters
    return renderer.renderPieces({ messages, tools, addGenerationPrompt, now, sampledIds, maxCharacters })
  }
}

const never = () => false

/** Returns `null` if the messages cannot be rendered with marks in them. A prompt that is too large stays an error. */
function unlessRaised(render: () => string[]): string[] | null {
  try {
    return render()
  } catch (error) {
    const isTooLarge = error instanceof TrainError && error.code === 'POLICY_CONTEXT_OVERFLOW'
    if ((error instanceof TrainError && !isTooLarge) || error instanceof RenderingTooLong) return null
    throw error
  }
}

/** Characters above the limit, for a mark and the text that a template writes after the last message. Both are cut off again. */
const cutCharacters = 1_024

function requireCalls({ probe }: ConversationSettings): void {
  if (probe.syntax !== null) return
  const what = probe.arguments === 'none' ? 'cannot print tool calls' : 'writes tool calls in a way that is not understood here'
  throw new TrainError('TEMPLATE_UNSUPPORTED', `The chat template of this model ${what}; send no tools, or use another model.`)
}

const withMarks = ({ messages, marked }: ConversationTurn): Message[] => [...messages.slice(0, -1), marked]

function areReordered(recorded: readonly string[], received: readonly string[]): boolean {
  const sorted = received.toSorted()
  return recorded.length === received.length && recorded.toSorted().every((part, index) => part === sorted[index])
}

function tally(kinds: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const kind of kinds) counts[kind] = (counts[kind] ?? 0) + 1
  return counts
}
