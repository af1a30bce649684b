/** Settles with `work`, or rejects with `late()` after `milliseconds`; the work is then left to itself. */
export function withDeadline<Value>(work: PromiseLike<Value>, milliseconds: number, late: () => Error): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(late()), milliseconds)
    Promise.resolve(work)
      .finally(() => clearTimeout(timer))
      .then(resolve, reject)
  })
}
