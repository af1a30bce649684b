import type { ReasoningTags } from '../reasoning-tags.ts'
import type { ForcedCall } from '../types.ts'
import type { ToolCallSyntax } from './syntax.ts'

/**
 * Text that opens a call. Its ids end the prompt and have mask 0, so that the model can only continue the call. `openReasoning` is set if
 * the prompt ends inside a reasoning block, which is closed first. `null` if the syntax has no such text.
 */
export function forcedPrefix(syntax: ToolCallSyntax, call: ForcedCall, openReasoning: ReasoningTags | null): string | null {
  const opening = syntax.opening(call.kind === 'named' ? call.name : null)
  if (opening === null) return null
  return openReasoning === null ? opening : `\n${openReasoning.close}\n\n${opening}`
}
