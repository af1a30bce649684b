import type { ConsoleReader } from '@aworld-train/core'
import { commonFailures, createFailureReader, type FailureRow } from '@aworld-train/python-bridge'

/** Known failures of ms-swift 4.6 and their remedies, the most specific first. */
const rows: readonly FailureRow[] = [
  ...commonFailures('swift'),
  {
    pattern: /OutOfMemoryError: (.+)|CUDA out of memory[^\n]*/,
    code: 'TRAINER_OUT_OF_MEMORY',
    describe: ([line, detail]) =>
      `A GPU ran out of memory (${detail ?? line}). Lower per_device_train_batch_size, raising gradient_accumulation_steps for it, or max_completion_length.`,
  },
  {
    pattern: /\[LOGPROBS_NOT_FINITE\]/,
    code: 'TRAINER_NOT_FINITE',
    describe: () => 'The logprob of a sampled token is no finite number any more: an update diverged. Resume with a lower learning_rate.',
  },
  {
    pattern:
      /is not a local folder and is not a valid model identifier|does not appear to have a file named (\S+)|Repo id must be in the form/,
    code: 'CONFIG_INVALID',
    describe: () => 'The model cannot be read; correct model.path.',
  },
]

export function createConsoleReader(): ConsoleReader {
  const failures = createFailureReader('swift', rows)
  return { read: failures.read, failure: failures.failure }
}
