import type { GrowingTokens, Message } from '@aworld-train/core'
import type { ToolSet } from '../render/chat-renderer.ts'
import { promptIdTexts, type SampledIds } from '../render/template-messages.ts'
import type { TextTokenizer } from '../tokenizer.ts'
import type { HistoryMode, TemplateProbe } from '../types.ts'
import { encodeByTurns } from './encode-by-turns.ts'
import { type Mark, turnKind } from './marks.ts'
import type { ComparedSkeleton, Skeleton } from './skeleton.ts'
import { firstStop, maskedGap, type StopPlace } from './stop-texts.ts'

/** A sampled turn, with all that is needed to continue it. */
export interface ConversationTurn {
  readonly index: number
  /** The recorded turn whose conversation this one extends, or `null`. */
  readonly matched: ConversationTurn | null
  /** Turns that extend this one's conversation. */
  readonly children: ConversationTurn[]
  /** Messages since `matched`; the delivered one is last. */
  readonly messages: readonly Message[]
  /** Number of messages from the root to the delivered one. */
  readonly depth: number
  readonly delivered: Message
  readonly marked: Message
  readonly marks: readonly Mark[]
  readonly tools: ToolSet
  readonly skeleton: Skeleton
  /** The memory of `promptIds`. */
  readonly tokens: GrowingTokens
  readonly promptIds: Int32Array
  readonly sampledIds: Int32Array
}

export interface RuleSettings {
  readonly tokenizer: TextTokenizer
  readonly stops: ReadonlyMap<number, string>
  readonly probe: TemplateProbe
  /** Texts that show, in delivered content, that a template may treat it as markup. */
  readonly markup: readonly string[]
}

export type Continuation =
  | { readonly continues: true; readonly suffix: Int32Array; readonly tolerated: readonly string[] }
  | { readonly continues: false; readonly reasons: readonly string[] }

export interface ContinuationInput {
  readonly turn: ConversationTurn
  /** The skeleton of the request's history, compared with that of `turn`. */
  readonly compared: ComparedSkeleton
  /** Text that follows the skeleton: that of a trailing assistant message, and the opening of a forced call. */
  readonly appended: string
  /** Differences of the request's history that a history mode may overlook: `tools-order`, `empty-turn`. */
  readonly rewrites: readonly string[]
  /** The recorded messages, and those that follow them. */
  readonly messages: readonly Message[]
  readonly sampledIds: SampledIds
  readonly history: HistoryMode
}

const tolerable = new Set(['prefix', 'dropped:reasoning', 'dropped:content', 'closer', 'markup', 'tools-order', 'empty-turn'])

/**
 * Decides whether the tokens of a recorded turn may be continued, and with which ids. The rendering with marks must begin as it did
 * then, contain every mark in sampled order, and close the turn as probed. The text after the first stop token behind the last mark is
 * encoded in that token's context.
 */
export function continuation(input: ContinuationInput, settings: RuleSettings): Continuation {
  const { turn, compared } = input
  const { tail } = compared
  const { end, reasons: missing } = placeMarks(turn, tail)
  if (end < 0) return { continues: false, reasons: [...missing, 'no-sentinel'] }
  const reasons = [...input.rewrites, ...missing]
  if (!compared.startsAsRecorded) reasons.push('prefix')
  const stop = firstStop(tail, settings.stops, end)
  if (stop === null || !closesAsProbed(input, settings, tail.slice(end, stop.start))) {
    return { continues: false, reasons: [...reasons, 'no-closer'] }
  }
  const sampledStop = settings.stops.get(turn.sampledIds.at(-1) ?? -1)
  if (sampledStop !== undefined && sampledStop !== stop.text) reasons.push('closer')
  if (settings.markup.some((text) => turn.delivered.content?.includes(text))) reasons.push('markup')
  if (reasons.some((reason) => !allows(input, reason))) return { continues: false, reasons }
  return {
    continues: true,
    suffix: suffixIds(input, settings, stop, end, sampledStop),
    tolerated: reasons.filter((reason) => reason !== 'empty-turn'),
  }
}

function placeMarks(turn: ConversationTurn, tail: string): { end: number; reasons: string[] } {
  const reasons: string[] = []
  let end = -1
  for (const { kind, text } of turn.marks) {
    const at = tail.lastIndexOf(text)
    if (at < 0) {
      reasons.push(`dropped:${kind}`)
      continue
    }
    if (at < end) reasons.push('order')
    end = Math.max(end, at + text.length)
  }
  return { end, reasons: [...new Set(reasons)] }
}

function closesAsProbed({ turn, messages, sampledIds }: ContinuationInput, { probe }: RuleSettings, gap: string): boolean {
  const closer = probe.closers[turnKind(turn.delivered)]
  return closer !== null && maskedGap(gap, probe.idsInPrompt ? promptIdTexts(messages, probe.idForm, sampledIds) : []) === closer
}

/** Whether a history mode tolerates a rewrite: `template` never, `loop` only between a turn and its tool results. */
function allows({ history, turn, messages }: ContinuationInput, reason: string): boolean {
  if (history === 'template' || !tolerable.has(reason)) return false
  return history === 'as-sampled' || messages.slice(turn.depth).every(({ role }) => role === 'tool' || role === 'assistant')
}

function suffixIds(
  { turn, compared, appended }: ContinuationInput,
  { tokenizer, stops }: RuleSettings,
  stop: StopPlace,
  end: number,
  sampledStop: string | undefined,
): Int32Array {
  const { tail } = compared
  if (sampledStop === undefined) {
    const from = turn.delivered.toolCalls?.length ? stop.start : end
    return encodeByTurns(tail.slice(from) + appended, tokenizer, stops)
  }
  const ids = encodeByTurns(sampledStop + tail.slice(stop.end) + appended, tokenizer, stops)
  if (ids[0] !== turn.sampledIds.at(-1)) throw new Error(`The tokenizer does not read ${sampledStop} back as the token it is.`)
  return ids.subarray(1)
}
