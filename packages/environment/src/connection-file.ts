import { readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { TrainError } from '@aworld-train/protocol'

/** The address and token of a running environment, for the agents of its project; the file is readable by its owner alone. */
export interface EnvironmentConnection {
  readonly version: 1
  /** `http://127.0.0.1:8000/mcp` */
  readonly url: string
  /** Bearer token of connections. */
  readonly token: string
  /** Process that serves. */
  readonly pid: number
}

/** Folder of a project's environment, and in it the file of a running one. */
export const environmentFolder = join('.aworld-train', 'environment')
export const connectionFileName = 'connection.json'

/** The environment that was started in `directory` or, next, in the folders above it; `null` where none was. Throws CONFIG_INVALID for an unreadable file. */
export function findConnection(directory: string): EnvironmentConnection | null {
  for (let folder = resolve(directory); ; folder = dirname(folder)) {
    const connection = readConnection(join(folder, environmentFolder))
    if (connection || folder === dirname(folder)) return connection
  }
}

/** The environment whose files stand in `folder`; `null` where none runs. */
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
