import type { Jail } from './jail.ts'

/** Most bytes that wait for a program to read them. */
const bufferedBytes = 2 ** 20

/**
 * Writes to the standard input of a jail as fast as it is read, until either ends. Resolves to the error of the chunks, if there is one.
 */
export async function feed({ stdin, ended }: Pick<Jail, 'stdin' | 'ended'>, chunks: AsyncIterable<Uint8Array>): Promise<unknown> {
  const iterator = chunks[Symbol.asyncIterator]()
  const over = ended.then(() => null)
  const closed = new Promise((resolve) => stdin.once('close', resolve))
  try {
    for (let next = await Promise.race([iterator.next(), over]); next && !next.done; next = await Promise.race([iterator.next(), over])) {
      stdin.write(next.value)
      if (stdin.writableLength > bufferedBytes) await Promise.race([new Promise((resolve) => stdin.once('drain', resolve)), closed, over])
    }
    return undefined
  } catch (error) {
    return error
  } finally {
    stdin.end()
    iterator.return?.()?.catch(() => {})
  }
}
