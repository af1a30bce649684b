/** What reaches a process twice within this time, from a terminal and from npm, is one request to stop. */
const sameRequestMs = 500

export interface StopSignal {
  readonly signal: AbortSignal
  /** Whoever read the output has closed it, as `head` does. */
  outputClosed(): boolean
  dispose(): void
}

/** Aborts at the first SIGINT or SIGTERM, of which a second one ends the process at once, and when nobody reads the output any more. */
export function createStopSignal(source: NodeJS.Process): StopSignal {
  const controller = new AbortController()
  let stoppedAt = 0
  let closed = false
  const stop = (name: NodeJS.Signals) => {
    if (controller.signal.aborted) {
      if (performance.now() - stoppedAt > sameRequestMs) source.exit(130)
      return
    }
    stoppedAt = performance.now()
    source.stderr.write(`\n${name}: stopping; once more ends at once.\n`)
    controller.abort(new Error(`stopped by ${name}`))
  }
  const outputFailed = (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    closed = true
    controller.abort(new Error('nobody reads the output'))
  }
  source.on('SIGINT', stop)
  source.on('SIGTERM', stop)
  // These stay: what is written last is known to have failed only after it.
  source.stdout.on('error', outputFailed)
  source.stderr.on('error', outputFailed)
  return {
    signal: controller.signal,
    outputClosed: () => closed,
    dispose() {
      source.off('SIGINT', stop)
      source.off('SIGTERM', stop)
    },
  }
}
