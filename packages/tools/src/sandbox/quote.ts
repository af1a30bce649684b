import { ToolError } from '@aworld-train/core'

/** A text as one word of bash. */
export const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

/** Texts as words of bash that a program is given. */
export function words(texts: readonly string[]): string {
  if (texts.some((text) => text.includes('\0'))) throw new ToolError('An argument or a variable cannot hold a NUL character.')
  return texts.map(quote).join(' ')
}
