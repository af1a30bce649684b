import { TrainError } from '@aworld-train/core'
import { RenderingTooLong } from '../render/compile-template.ts'

/** Throws POLICY_CONTEXT_OVERFLOW for texts that together have more bytes of UTF-8 than a prompt may. */
export function checkPromptSize(texts: readonly string[], maxBytes: number): void {
  let characters = 0
  for (const { length } of texts) characters += length
  // A unit of UTF-16 has one to three bytes of UTF-8, so the length alone decides for most prompts.
  if (3 * characters <= maxBytes) return
  let bytes = 0
  for (const text of texts) bytes += Buffer.byteLength(text)
  if (bytes > maxBytes) throw tooLarge(`${bytes} bytes`, maxBytes)
}

/** Returns the result of `render`. Throws POLICY_CONTEXT_OVERFLOW if it is too large, also if `render` stopped early for that. */
export function withinPromptSize(maxBytes: number, render: () => string[]): string[] {
  let pieces: string[]
  try {
    pieces = render()
  } catch (error) {
    if (error instanceof RenderingTooLong) throw tooLarge(`at least ${error.characters} bytes`, maxBytes)
    throw error
  }
  checkPromptSize(pieces, maxBytes)
  return pieces
}

function tooLarge(size: string, maxBytes: number): TrainError {
  const message = `The text of the conversation has ${size}, and a prompt may have ${maxBytes} (maxPromptBytes); shorten it, use a model with a longer context, or raise maxPromptBytes.`
  return new TrainError('POLICY_CONTEXT_OVERFLOW', message, { details: { stopReason: 'context-overflow', param: 'messages' } })
}
