import { relative } from 'node:path'

/** A path as a person types it from the working directory; whole where it lies above that. */
export function displayPath(path: string): string {
  const short = relative(process.cwd(), path)
  return short === '' || short.startsWith('..') ? path : short
}
