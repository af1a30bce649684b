import { readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { TrainError } from '@aworld-train/core'

/** Address and token of a running environment, for the agents of its project. Only the owner can read the file. */
export interface EnvironmentConnection {
  readonly version: 1
  /** `http://127.0.0.1:8000/mcp`, or the address at which agents elsewhere reach it. */
  readonly url: string
  /** Its address on this machine, where that is another. */
  readonly localUrl?: string | undefined
  /** Bearer token of connections. */
  readonly token: string
  /** Id of the serving process. */
  readonly pid: number
}

/** Folder of a project's environment, and the file in it that describes a running one. */
export const environmentFolder = join('.aworld-train', 'environment')
export const connectionFileName = 'connection.json'

/**
 * Finds the environment that was started in `directory` or in the nearest folder above it; `null` if there is none. Throws
 * CONFIG_INVALID for an unreadable file.
 */
export function findConnection(directory: string): EnvironmentConnection | null {
  for (let folder = resolve(directory); ; folder = dirname(folder)) {
    const connection = readConnection(join(folder, environmentFolder))
    if (connection || folder === dirname(folder)) return connection
  }
}

/** Reads the environment whose files are in `folder`; `null` if none runs. */
export function readConnection(folder: string): EnvironmentConnection | null {
  const file = join(folder, connectionFileName)
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return null
    throw new TrainError('CONFIG_INVALID', `The connection of the environment in ${file} cannot be read: ${message}.`, { cause: error })
  }
  try {
    const connection = JSON.parse(text) as EnvironmentConnection
    if (connection?.version === 1 && URL.canParse(connection.url) && typeof connection.token === 'string') return connection
  } catch {
    // The error below says what to do.
  }
  throw new TrainError('CONFIG_INVALID', `${file} is not what "aworld-train env start" writes; remove it and start the environment again.`)
}
