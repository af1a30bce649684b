import { closeSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { connectionFileName, type EnvironmentConnection, environmentFolder } from '@aworld-train/environment'

/** The files of a project's environment. */
export interface EnvironmentFiles {
  readonly folder: string
  /** What a running environment is reached by; its owner alone reads it. */
  readonly connection: string
  /** Private key that tokens are signed with; it stays, so that tokens outlive a restart. */
  readonly key: string
  /** What the process in the background prints. */
  readonly log: string
  /** Folders of the leases. */
  readonly leases: string
}

/** Names the files of the environment of the project in `directory`, and makes their folder, which its owner alone enters. */
export function environmentFiles(directory: string): EnvironmentFiles {
  const folder = resolve(directory, environmentFolder)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  return {
    folder,
    connection: join(folder, connectionFileName),
    key: join(folder, 'key.json'),
    log: join(folder, 'server.log'),
    leases: join(folder, 'leases'),
  }
}

/** Writes the connection whole, readable by its owner alone. */
export function writeConnection({ connection: path }: EnvironmentFiles, connection: EnvironmentConnection): void {
  const draft = `${path}.draft`
  rmSync(draft, { force: true })
  closeSync(openSync(draft, 'wx', 0o600))
  writeFileSync(draft, `${JSON.stringify(connection, null, 2)}\n`)
  renameSync(draft, path)
}

export const removeConnection = ({ connection }: EnvironmentFiles): void => rmSync(connection, { force: true })
