import type { ToolDefinition } from '@aworld-train/protocol'

/** A call as it was parsed; `arguments` is JSON text of an object. */
export interface ParsedCall {
  readonly name: string
  readonly arguments: string
  /** The id that the model wrote, where its syntax has ids. */
  readonly promptId?: string
}

/**
 * What a marker would mean behind the text that was read: `argument`, it is text of an argument; `complete`, it ends a call;
 * `open`, a call is not whole yet; `broken`, whatever follows, this is no call; `other`, it never looked like one.
 */
export type BodyState = 'argument' | 'complete' | 'open' | 'broken' | 'other'

/** Reads the text of a call as it comes, each character once, so that a marker within an argument is told from the end of the call. */
export interface BodyScan {
  readonly state: BodyState
  read(text: string): void
}

/** One way of writing tool calls: a row of the table. */
export interface ToolCallSyntax {
  readonly name: string
  /** Markers that begin a call. */
  readonly opens: readonly string[]
  /** A message that begins with this character is calls as a whole. */
  readonly bare?: '{' | '['
  /** `null`: the call ends with the message, or at the next opening marker. */
  readonly close: string | null
  /** Markers round a group of calls, without a meaning of their own. */
  readonly around?: readonly string[]
  /** Text in the body of a call that no answer holds: where it is met outside one, an opening marker is missing. */
  readonly tell?: string
  /** Messages have headers with a channel and a recipient, instead of markers within a text. */
  readonly channels?: true
  scan(): BodyScan
  /** The calls of a complete body; `null` when it is none. */
  parse(body: string, tools: readonly ToolDefinition[]): readonly ParsedCall[] | null
  /** Text that begins a call of a tool, or of any where `name` is `null`; `null` where there is no such text. */
  opening(name: string | null): string | null
}
