/** A terminal and npm may both pass on one request to stop. Signals within this time count as one. */
const sameRequestMs = 500

export interface StopSignal {
  readonly signal: AbortSignal
  /** Whether the reader of the output has closed it, as `head` does. */
  outputClosed(): boolean
  dispose(): void
}

/** Aborts at the first SIGINT or SIGTERM, and when nobody reads the output any more. A second signal ends the process immediately. */
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
  // These listeners stay, because the last write may fail later.
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
