import type { ReasoningTags } from '../reasoning-tags.ts'
import type { ToolCallSyntax } from './syntax.ts'

/** A call that the next turn must consist of: of any tool, or of a named one. */
export type ForcedChoice = { readonly kind: 'required' } | { readonly kind: 'named'; readonly name: string }

/**
 * Text that opens a call. Its ids end the prompt and have mask 0, so that the model can only continue the call. `openReasoning` is
 * set where the prompt ends inside a reasoning block, which is closed first. `null` where the syntax has no such text.
 */
export function forcedPrefix(syntax: ToolCallSyntax, choice: ForcedChoice, openReasoning: ReasoningTags | null): string | null {
  const opening = syntax.opening(choice.kind === 'named' ? choice.name : null)
  if (opening === null) return null
  return openReasoning === null ? opening : `\n${openReasoning.close}\n\n${opening}`
}
