import type { ToolDefinition } from '@aworld-train/core'
import { createCallReader } from '../call-reader.ts'
import { createChannelReader } from '../channel-reader.ts'
import { CompletionOutput } from '../completion-output.ts'
import type { ToolCallSyntax } from './syntax.ts'
import { toolCallSyntaxes } from './table.ts'

export interface PrintedCall {
  /** The printed text from the call's turn on, up to the stop token that ends it. */
  readonly text: string
  /** Text of that stop token; `''` if none follows. */
  readonly stop: string
  readonly name: string
  /** A word in the arguments. */
  readonly argument: string
  readonly tools: readonly ToolDefinition[]
}

/** Finds the row of the table that reads a printed call back completely and correctly; `null` if there is none. */
export function findSyntax(printed: PrintedCall): string | null {
  return toolCallSyntaxes.find((syntax) => startsOf(syntax, printed.text).some((start) => reads(syntax, printed, start)))?.name ?? null
}

const bareStarts = 40

/**
 * Places where a call may begin. A call that is a whole message follows a header of unknown form, so it may begin at any of
 * its possible first characters.
 */
function startsOf({ bare }: ToolCallSyntax, text: string): number[] {
  const starts = [0]
  if (bare === undefined) return starts
  for (let at = text.indexOf(bare); at >= 0 && starts.length < bareStarts; at = text.indexOf(bare, at + 1)) starts.push(at)
  return starts
}

function reads(syntax: ToolCallSyntax, { text, stop, name, argument, tools }: PrintedCall, start: number): boolean {
  const output = new CompletionOutput({ parallelCalls: true, mintToolCallId: String, idForm: 'any' })
  const isSpecial = (marker: string) => marker === stop
  const options = { output, syntax, tools, isSpecial }
  const reader = syntax.channels ? createChannelReader(options) : createCallReader(options)
  reader.read({ text: text.slice(start), special: false, stop: false })
  if (stop !== '') reader.read({ text: stop, special: true, stop: true })
  reader.finish(true)
  const [call, ...more] = output.message.toolCalls ?? []
  return more.length === 0 && output.issues.length === 0 && call?.name === name && call.arguments.includes(argument)
}
