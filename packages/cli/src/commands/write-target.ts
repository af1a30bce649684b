import { TrainError } from '@aworld-train/core'

const full: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])

/**
 * Writes to a place that the user named. An error of the file system becomes CONFIG_INVALID or STORE_FULL, which name the place and the
 * remedy.
 */
export async function writeTarget<Result>(target: string, write: () => Promise<Result>): Promise<Result> {
  try {
    return await write()
  } catch (cause) {
    const { code, syscall, message } = cause as NodeJS.ErrnoException
    if (cause instanceof TrainError || syscall === undefined) throw cause
    if (full.has(code)) throw new TrainError('STORE_FULL', `${target} could not be written: ${message}; free space there.`, { cause })
    throw new TrainError('CONFIG_INVALID', `${target} cannot be written: ${message}; name a place that is there and can be written.`, {
      cause,
    })
  }
}
