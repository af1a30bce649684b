import { isRunning } from '@aworld-train/core'
import { type EnvironmentConnection, readConnection } from '@aworld-train/environment'
import { EnvironmentStatus } from '@aworld-train/protocol'
import { type EnvironmentFiles, removeConnection } from './environment-files.ts'

/** How long a healthy server may take to say how it is. */
const answerMs = 5_000

export interface RunningEnvironment {
  readonly connection: EnvironmentConnection
  /** `null`: its process is there, and does not answer. */
  readonly status: EnvironmentStatus | null
}

/** The environment of a project; `null` where none runs. What a killed one left behind is removed. */
export async function findRunning(files: EnvironmentFiles): Promise<RunningEnvironment | null> {
  const connection = readConnection(files.folder)
  if (!connection) return null
  const status = await askStatus(connection)
  if (status === null && !isRunning(connection.pid)) {
    removeConnection(files)
    return null
  }
  return { connection, status }
}

/** How an environment is, by its own account; `null` where it does not answer. */
export async function askStatus({ url, token }: EnvironmentConnection): Promise<EnvironmentStatus | null> {
  try {
    const response = await fetch(new URL('/v1/status', url), {
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(answerMs),
    })
    return response.ok ? EnvironmentStatus.parse(await response.json()) : null
  } catch {
    return null
  }
}
