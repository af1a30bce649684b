import { EnvironmentStatus, isRunning } from '@aworld-train/core'
import { type EnvironmentConnection, readConnection } from '@aworld-train/environment'
import { type EnvironmentFiles, removeConnection } from './environment-files.ts'

/** How long a healthy server may take to report its status. */
const answerMs = 5_000

export interface RunningEnvironment {
  readonly connection: EnvironmentConnection
  /** `null` if its process exists but does not answer. */
  readonly status: EnvironmentStatus | null
}

/** Finds the environment of a project; `null` if none runs. The files of a killed one are removed. */
export async function findRunning(files: EnvironmentFiles): Promise<RunningEnvironment | null> {
  const connection = readConnection(files.folder)
  if (!connection) return null
  try {
    return { connection, status: await fetchStatus(connection) }
  } catch (error) {
    // Another program may have the number of a killed one, but nobody listens for it.
    if (!isRefused(error) && isRunning(connection.pid)) return { connection, status: null }
    removeConnection(files)
    return null
  }
}

/** The status of an environment by its own account; `null` if it does not answer. */
export const askStatus = (connection: EnvironmentConnection): Promise<EnvironmentStatus | null> => fetchStatus(connection).catch(() => null)

async function fetchStatus({ url, localUrl = url, token }: EnvironmentConnection): Promise<EnvironmentStatus> {
  const response = await fetch(new URL('/v1/status', localUrl), {
    headers: { authorization: `Bearer ${token}` },
    signal: AbortSignal.timeout(answerMs),
  })
  return EnvironmentStatus.parse(await response.json())
}

const isRefused = (error: unknown) => ((error as Error).cause as NodeJS.ErrnoException | undefined)?.code === 'ECONNREFUSED'
