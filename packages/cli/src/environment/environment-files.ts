import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { connectionFileName, type EnvironmentConnection, environmentFolder } from '@aworld-train/environment'

/** The files of a project's environment. */
export interface EnvironmentFiles {
  readonly folder: string
  /** Address and token of a running environment; only its owner can read it. */
  readonly connection: string
  /** Key for signing tokens. It stays, so that tokens survive a restart. */
  readonly key: string
  /** Output of the process in the background, without the token. */
  readonly log: string
}

/** Names the files of the environment of the project in `directory`. */
export function environmentFiles(directory: string): EnvironmentFiles {
  const folder = resolve(directory, environmentFolder)
  return { folder, connection: join(folder, connectionFileName), key: join(folder, 'key.pem'), log: join(folder, 'server.log') }
}

/** Makes the folder, which only its owner can enter. */
export const makeEnvironmentFolder = ({ folder }: EnvironmentFiles): void => void mkdirSync(folder, { recursive: true, mode: 0o700 })

/** Writes the connection atomically, readable by its owner alone. */
export function writeConnection({ connection: path }: EnvironmentFiles, connection: EnvironmentConnection): void {
  const draft = `${path}.${process.pid}`
  rmSync(draft, { force: true })
  writeFileSync(draft, `${JSON.stringify(connection, null, 2)}\n`, { mode: 0o600, flag: 'wx' })
  renameSync(draft, path)
}

export const removeConnection = ({ connection }: EnvironmentFiles): void => rmSync(connection, { force: true })
