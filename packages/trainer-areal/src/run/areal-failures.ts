import type { ConsoleReader } from '@aworld-train/core'
import { commonFailures, createFailureReader, type FailureRow } from '@aworld-train/python-bridge'

/** Known failures of AReaL 1.0.4 and their remedies, the most specific first. */
const rows: readonly FailureRow[] = [
  ...commonFailures('areal'),
  {
    pattern: /OutOfMemoryError: (.+)|CUDA out of memory[^\n]*/,
    code: 'TRAINER_OUT_OF_MEMORY',
    describe: ([line, detail]) =>
      `A GPU ran out of memory (${detail ?? line}). Lower actor.mb_spec.max_tokens_per_mb, or gconfig.max_new_tokens.`,
  },
  {
    pattern: /\[LOGPROBS_NOT_FINITE\]/,
    code: 'TRAINER_NOT_FINITE',
    describe: () =>
      'The logprob of a sampled token is no finite number any more: an update diverged. Resume with a lower actor.optimizer.lr.',
  },
  {
    pattern:
      /is not a local folder and is not a valid model identifier|does not appear to have a file named (\S+)|Repo id must be in the form/,
    code: 'CONFIG_INVALID',
    describe: () => 'The model cannot be read; correct model.path.',
  },
]

export function createConsoleReader(): ConsoleReader {
  const failures = createFailureReader('areal', rows)
  // torch names the rank before every line of the exception that ended it.
  return { read: (line) => failures.read(line.replace(/^\[rank\d+\]: /, '')), failure: failures.failure }
}
