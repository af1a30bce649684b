import { relative } from 'node:path'

/** A path as a person types it from the working directory; absolute if it is outside of that. */
export function displayPath(path: string): string {
  const short = relative(process.cwd(), path)
  return short === '' || short.startsWith('..') ? path : short
}
