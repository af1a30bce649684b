import { suggest } from '@aworld-train/core'

/** `; did you mean "x"?` if there is a near name, else `; there is …`. */
export function suggestion(name: string, candidates: readonly string[]): string {
  const near = suggest(name, candidates)
  if (near) return `; did you mean "${near}"?`
  return candidates.length ? `; there is ${candidates.map((candidate) => `"${candidate}"`).join(', ')}.` : '; there is none.'
}
