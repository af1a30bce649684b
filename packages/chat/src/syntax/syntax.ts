import type { ToolDefinition } from '@aworld-train/protocol'

/** A call as it was parsed; `arguments` is JSON text of an object. */
export interface ParsedCall {
  readonly name: string
  readonly arguments: string
  /** The id that the model wrote, where its syntax has ids. */
  readonly promptId?: string
}

/** One way of writing tool calls: a row of the table. */
export interface ToolCallSyntax {
  readonly name: string
  readonly open: string
  /** `null`: the call ends with the message. */
  readonly close: string | null
  /** The calls in the text between the markers; `null` when it is not one, which may be because it is not complete. */
  parse(body: string, tools: readonly ToolDefinition[]): readonly ParsedCall[] | null
  /** Text that begins a call of a tool, or of any where `name` is `null`; `null` where there is no such text. */
  opening(name: string | null): string | null
}
