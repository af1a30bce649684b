/** The longest part of a deadline that a process which stands still loses of it. */
const longestPartMs = 1_000

/** Settles with `work`, or rejects with `late()` after `milliseconds`; the work is then left to itself. While this process stands still no time passes. */
export function withDeadline<Value>(work: PromiseLike<Value>, milliseconds: number, late: () => Error): Promise<Value> {
  const partMs = Math.min(longestPartMs, milliseconds / 10)
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout
    // A timer that comes late counts as if it came in time: what happened meanwhile is read after it.
    const wait = (leftMs: number) => {
      timer = setTimeout(() => (leftMs <= partMs ? reject(late()) : wait(leftMs - partMs)), Math.min(partMs, leftMs))
    }
    wait(milliseconds)
    Promise.resolve(work)
      .finally(() => clearTimeout(timer))
      .then(resolve, reject)
  })
}
