import { suggest as nearest } from '@aworld-train/core'

const bare = (name: string) => name.replaceAll('_', '').toLowerCase()

/**
 * Finds the name that `name` was probably meant to be, else the shortest that contains it, as many of AWorld's do; `null` if none is near.
 */
export function suggest(name: string, names: readonly string[]): string | null {
  const part = bare(name)
  const longer = part.length < 4 ? [] : names.filter((candidate) => bare(candidate).includes(part))
  return nearest(name, names) ?? longer.sort((a, b) => a.length - b.length)[0] ?? null
}
