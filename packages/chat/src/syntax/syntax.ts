import type { ToolDefinition } from '@aworld-train/core'

/** A parsed call. `arguments` is the JSON text of an object. */
export interface ParsedCall {
  readonly name: string
  readonly arguments: string
  /** The id that the model wrote, if its syntax has ids. */
  readonly promptId?: string
}

/**
 * The meaning of a marker after the text so far. `argument`: it is text of an argument. `complete`: it ends a call. `open`: the call is not
 * whole yet. `broken`: this can be no call, whatever follows. `other`: the text never looked like a call.
 */
export type BodyState = 'argument' | 'complete' | 'open' | 'broken' | 'other'

/** Reads the text of a call as it comes, each character once, to distinguish a marker within an argument from the end of the call. */
export interface BodyScan {
  readonly state: BodyState
  read(text: string): void
}

/** One way of writing tool calls: a row of the table. */
export interface ToolCallSyntax {
  readonly name: string
  /** Markers that begin a call. */
  readonly opens: readonly string[]
  /** A message that begins with this character consists of calls only. */
  readonly bare?: '{' | '['
  /** Marker that ends a call; `null` if it ends with the message, or at the next opening marker. */
  readonly close: string | null
  /** Markers around a group of calls, without a meaning of their own. */
  readonly around?: readonly string[]
  /** Text that occurs only in the body of a call. Outside of a call it shows that an opening marker is missing. */
  readonly tell?: string
  /** Whether messages have headers with a channel and a recipient, instead of markers within a text. */
  readonly channels?: true
  scan(): BodyScan
  /** Parses the calls of a complete body; `null` if the body is not valid. */
  parse(body: string, tools: readonly ToolDefinition[]): readonly ParsedCall[] | null
  /** Text that begins a call of the tool `name`, or of any tool for `null`; `null` if there is no such text. */
  opening(name: string | null): string | null
}
