/**
 * The part of a page's address after `#` that shows these runs: one by itself, several laid over each other, and the list if none is named.
 */
export function addressOfRuns(ids: readonly string[]): string {
  const names = ids.map(encodeURIComponent)
  return names.length === 1 ? `#/${names[0]}` : `#/${names.length === 0 ? '' : `?with=${names.join('/')}`}`
}
