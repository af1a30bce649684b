import { type ErrorCode, errorCatalogue, type TrainerFailure } from '@aworld-train/core'

/** A known failure and its remedy. */
export interface FailureRow {
  readonly pattern: RegExp
  readonly code: ErrorCode | ((match: RegExpExecArray) => ErrorCode)
  readonly describe: (match: RegExpExecArray) => string
}

/** Errors that end the channel of a worker, and so every rollout. */
const channelError = /\bChannelError: \[?((?:CHANNEL|CONFIG|DATASET|MODEL|TEMPLATE)_[A-Z_]+)\]?:? (.+)/
/**
 * Lines about the end of one rollout, which quote agents and tools. They are no failure of the run: the episode has the
 * error, and its group is replaced.
 */
const rolloutError = /\bChannelError: (?!POLICY_WORKER_DIED)/

/** Failures of any trainer, which come before its own. */
export function commonFailures(trainer: string): FailureRow[] {
  return [
    {
      pattern: /\bRunError: ([A-Z_]+): (.+)/,
      code: ([, code]) => (Object.hasOwn(errorCatalogue, code as string) ? (code as ErrorCode) : 'TRAINER_FAILED'),
      describe: ([, , message]) => message as string,
    },
    {
      pattern: channelError,
      code: ([, code]) => channelCode(code as string),
      describe: ([, code, message]) => `The channel between ${trainer} and AWorld Train failed (${code}): ${message}`,
    },
    {
      pattern: /(?:ModuleNotFoundError: No module named|ImportError: cannot import name) '([^']+)'/,
      code: 'TRAINER_ENVIRONMENT',
      describe: ([, name]) =>
        `${trainer}'s Python lacks "${name}"; run "aworld-train setup ${trainer}", or set AWORLD_TRAIN_PYTHON to an environment that has it.`,
    },
    {
      pattern: /ImportError: (.+)/,
      code: 'TRAINER_ENVIRONMENT',
      describe: ([, what]) =>
        `${trainer}'s Python cannot load a library: ${what}. Run "aworld-train setup ${trainer}" to make one that fits this machine.`,
    },
    {
      pattern: /No space left on device/,
      code: 'STORE_FULL',
      describe: () => 'The disk is full; free space, then run the same command again: the run resumes from its last checkpoint.',
    },
  ]
}

/** Failures of models that transformers cannot read. `key` is the key of the configuration that names the model. */
export function modelFailures(key: string): FailureRow[] {
  return [
    {
      pattern:
        /is not a local folder and is not a valid model identifier|does not appear to have a file named (\S+)|Repo id must be in the form/,
      code: 'CONFIG_INVALID',
      describe: () => `The model cannot be read; correct ${key}.`,
    },
    {
      pattern: /couldn't connect to '(\S+)' to load/i,
      code: 'CONFIG_INVALID',
      describe: ([, hub]) =>
        `The model is neither a folder nor in the cache of Hugging Face, and ${hub} is not reached; download it first (hf download NAME), or set ${key} to a folder.`,
    },
  ]
}

/** Failures of a framework that trains a model of Hugging Face with torch. Keys are the framework's, as a user writes them. */
export function torchFailures({ memory, rate }: { readonly memory: string; readonly rate: string }): FailureRow[] {
  return [
    ...modelFailures('model.path'),
    {
      pattern: /OutOfMemoryError: (.+)|CUDA out of memory[^\n]*/,
      code: 'TRAINER_OUT_OF_MEMORY',
      describe: ([line, detail]) => `A GPU ran out of memory (${detail ?? line}). Lower ${memory}.`,
    },
    {
      pattern: /\[LOGPROBS_NOT_FINITE\]/,
      code: 'TRAINER_NOT_FINITE',
      describe: () => `The logprob of a sampled token is no finite number any more: an update diverged. Resume with a lower ${rate}.`,
    },
  ]
}

/** Maps the bridge's own codes, which distinguish more ends of a channel, to codes of the catalogue. */
function channelCode(named: string): ErrorCode {
  if (Object.hasOwn(errorCatalogue, named)) return named as ErrorCode
  return named === 'CHANNEL_UNAUTHORIZED' ? 'CONFIG_INVALID' : 'CHANNEL_LOST'
}

const lastException = /^(?:[\w.]+\.)?([A-Z]\w*(?:Error|Exception|Interrupt)): (.+)/

/** Reads the lines of a console that may say why a trainer ended. Feed it all lines, then ask. */
export interface FailureReader {
  read(line: string): void
  /** The failure of the first row that any line matches, else the last exception; `null` if there is neither. */
  failure(): TrainerFailure | null
}

/** Creates a reader. `rows` begin with the most specific. */
export function createFailureReader(trainer: string, rows: readonly FailureRow[]): FailureReader {
  let best = rows.length
  let found: TrainerFailure | null = null
  let exception: string | null = null
  return {
    read(line) {
      if (rolloutError.test(line) && !channelError.test(line)) return
      for (let index = 0; index < best; index++) {
        const row = rows[index] as FailureRow
        const match = row.pattern.exec(line)
        if (!match) continue
        best = index
        found = { code: typeof row.code === 'function' ? row.code(match) : row.code, message: row.describe(match), line }
      }
      const match = lastException.exec(line)
      if (match) exception = `${match[1]}: ${match[2]}`
    },
    failure: () =>
      found ?? (exception === null ? null : { code: 'TRAINER_FAILED', message: `${trainer} failed: ${exception}`, line: exception }),
  }
}
