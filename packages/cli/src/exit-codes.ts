/** Exit codes of the process, documented in `--help` and in the reference. A shell shows 141 for a program that SIGPIPE ended. */
export const exitCodes = { done: 0, failed: 1, misuse: 2, unreachable: 3, stopped: 130, outputClosed: 141 } as const

export const exitCodesText =
  'Exit codes: 0 done, 1 failed, 2 misuse, 3 the coordinator of a worker is gone, 130 stopped by a signal, 141 stopped because nobody reads the output.'
