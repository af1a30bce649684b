/** Longest part of a deadline that passes while this process stands still. */
const longestPartMs = 1_000

/**
 * Settles with `work`, or rejects with `late()` after `milliseconds` and abandons the work. No time passes while this process stands still.
 */
export function withDeadline<Value>(work: PromiseLike<Value>, milliseconds: number, late: () => Error): Promise<Value> {
  const partMs = Math.min(longestPartMs, milliseconds / 10)
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout
    // A late timer counts as on time, because events of the meantime are read after it.
    const wait = (leftMs: number) => {
      timer = setTimeout(() => (leftMs <= partMs ? reject(late()) : wait(leftMs - partMs)), Math.min(partMs, leftMs))
    }
    wait(milliseconds)
    Promise.resolve(work)
      .finally(() => clearTimeout(timer))
      .then(resolve, reject)
  })
}
