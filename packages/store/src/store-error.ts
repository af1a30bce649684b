import { type ErrorCode, errorMessage, TrainError } from '@aworld-train/core'

/** Codes of our catalogue for primary SQLite result codes (https://www.sqlite.org/rescode.html). */
const sqliteCodes: Readonly<Record<number, ErrorCode>> = {
  3: 'STORE_READ_ONLY',
  5: 'STORE_LOCKED',
  6: 'STORE_LOCKED',
  8: 'STORE_READ_ONLY',
  10: 'STORE_FULL',
  11: 'STORE_CORRUPT',
  13: 'STORE_FULL',
  14: 'STORE_READ_ONLY',
  26: 'STORE_CORRUPT',
}

const systemCodes: Readonly<Record<string, ErrorCode>> = {
  ENOSPC: 'STORE_FULL',
  EDQUOT: 'STORE_FULL',
  EFBIG: 'STORE_FULL',
  EROFS: 'STORE_READ_ONLY',
  EACCES: 'STORE_READ_ONLY',
  EPERM: 'STORE_READ_ONLY',
  ENOTDIR: 'STORE_READ_ONLY',
  EEXIST: 'STORE_READ_ONLY',
  ENOENT: 'STORE_CORRUPT',
}

const explanations: Partial<Record<ErrorCode, string>> = {
  STORE_FULL: 'could not be written: the disk is full or failing. Free space, then run the same command again; the run resumes.',
  STORE_READ_ONLY: 'cannot be written. Make the run folder writable, or set another runPath.',
  STORE_LOCKED: 'is in use by another process. Wait for it, or start a new run with --new.',
  STORE_FAILED: 'met an error of the system. Read its cause, then run the same command again; what was acknowledged is kept.',
  STORE_CORRUPT: 'is damaged. Start a new run with --new; the folder is left as it is.',
}

/** Turns an error of the file system or SQLite into a TrainError of the store that names the run and the remedy. */
export function toStoreError(error: unknown, path: string): TrainError {
  if (error instanceof TrainError) return error
  const code = storeErrorCode(error)
  const reason = errorMessage(error)
  return new TrainError(code, `Run ${path} ${explanations[code]} (${reason})`, { cause: error })
}

function storeErrorCode(error: unknown): ErrorCode {
  const { code, errcode } = error as { code?: string; errcode?: number }
  if (typeof errcode === 'number') return sqliteCodes[errcode & 0xff] ?? 'STORE_FAILED'
  if (error instanceof SyntaxError || error instanceof RangeError) return 'STORE_CORRUPT'
  return systemCodes[code ?? ''] ?? 'STORE_FAILED'
}

/** The error for a refused write: of an old attempt, of a second result, of a second training. */
export function conflict(message: string): TrainError {
  return new TrainError('STORE_CONFLICT', `${message}; drop this write.`)
}

export function corrupt(path: string, what: string): TrainError {
  return new TrainError('STORE_CORRUPT', `Run ${path} is damaged: ${what}. Start a new run with --new; the folder is left as it is.`)
}
