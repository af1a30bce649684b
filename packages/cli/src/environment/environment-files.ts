import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { connectionFileName, type EnvironmentConnection, environmentFolder } from '@aworld-train/environment'

/** The files of a project's environment. */
export interface EnvironmentFiles {
  readonly folder: string
  /** What a running environment is reached by; its owner alone reads it. */
  readonly connection: string
  /** Key that tokens are signed with; it stays, so that tokens outlive a restart. */
  readonly key: string
  /** What the process in the background says of itself, without the token. */
  readonly log: string
}

/** Names the files of the environment of the project in `directory`. */
export function environmentFiles(directory: string): EnvironmentFiles {
  const folder = resolve(directory, environmentFolder)
  return { folder, connection: join(folder, connectionFileName), key: join(folder, 'key.pem'), log: join(folder, 'server.log') }
}

/** Makes the folder, which its owner alone enters. */
export const makeEnvironmentFolder = ({ folder }: EnvironmentFiles): void => void mkdirSync(folder, { recursive: true, mode: 0o700 })

/** Writes the connection whole, readable by its owner alone. */
export function writeConnection({ connection: path }: EnvironmentFiles, connection: EnvironmentConnection): void {
  const draft = `${path}.${process.pid}`
  rmSync(draft, { force: true })
  writeFileSync(draft, `${JSON.stringify(connection, null, 2)}\n`, { mode: 0o600, flag: 'wx' })
  renameSync(draft, path)
}

export const removeConnection = ({ connection }: EnvironmentFiles): void => rmSync(connection, { force: true })
