import type { ConsoleReader } from '@aworld-train/core'
import { commonFailures, createFailureReader, torchFailures } from '../../shared/process/failure-reader.ts'

/** Known failures of AReaL 1.0.4 and their remedies, the most specific first. */
const rows = [
  ...commonFailures('areal'),
  ...torchFailures({ memory: 'actor.mb_spec.max_tokens_per_mb, or gconfig.max_new_tokens', rate: 'actor.optimizer.lr' }),
]

export function createConsoleReader(): ConsoleReader {
  const failures = createFailureReader('areal', rows)
  // torch names the rank before every line of the exception that ended it.
  return { read: (line) => failures.read(line.replace(/^\[rank\d+\]: /, '')), failure: failures.failure }
}
