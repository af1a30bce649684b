import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { TrainError } from '@aworld-train/core'
import { acquireRunLock } from '@aworld-train/store'

/**
 * Makes a folder and those above it, one by one. Node's own `recursive` never ends in a folder where none can be made, such as /proc (seen
 * with 24.21).
 */
async function makeFolder(path: string): Promise<void> {
  const stats = await stat(path).catch(() => null)
  if (stats?.isDirectory()) return
  if (dirname(path) !== path) await makeFolder(dirname(path))
  await mkdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST' || stats) throw error
  })
}

/**
 * Makes the folder of a recording and owns it until `release`. Throws CONFIG_INVALID if it cannot be written, and STORE_LOCKED if another
 * process has it.
 */
export async function ownRecording(path: string): Promise<{ release(): Promise<void> }> {
  try {
    await makeFolder(path)
    return await acquireRunLock(path)
  } catch (cause) {
    const { code, details } = cause as TrainError
    const { message } = ((cause as TrainError).cause ?? cause) as Error
    if (code === 'STORE_LOCKED') {
      const who = typeof details?.['pid'] === 'number' ? `process ${details['pid']}` : 'another process'
      throw new TrainError(
        'STORE_LOCKED',
        `The recording ${path} is in use by ${who}; stop that one, or name another folder in "recording".`,
        {
          cause,
        },
      )
    }
    throw new TrainError('CONFIG_INVALID', `The recording cannot be kept in ${path}: ${message}; name a folder that can be written.`, {
      cause,
    })
  }
}
