/**
 * Text that bash reads back unchanged: bare if it is harmless, else in quotes. NUL characters in it stand for the value of the variable
 * `runPath`.
 */
export function shellText(text: string, { runPath }: { readonly runPath?: string } = {}): string {
  if (/^[\w./:@%+=,-]+$/.test(text)) return text
  const parts = text
    .split('\0')
    .map((part) => (part === '' ? '' : /^[\w./:@%+=,-]+$/.test(part) ? part : `'${part.replaceAll("'", `'\\''`)}'`))
  return parts.join(runPath ? `"$${runPath}"` : '') || "''"
}
