/** Settles with `pending`, or rejects with the reason of the signal if that aborts first. */
export function orAborted<Value>(pending: Value | Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    Promise.resolve(pending)
      .finally(() => signal.removeEventListener('abort', onAbort))
      .then(resolve, reject)
  })
}
