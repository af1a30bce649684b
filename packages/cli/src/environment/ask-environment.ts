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
  try {
    return { connection, status: await fetchStatus(connection) }
  } catch (error) {
    // Another program may have the number of one that was killed, but nobody listens for it.
    if (!isRefused(error) && isRunning(connection.pid)) return { connection, status: null }
    removeConnection(files)
    return null
  }
}

/** How an environment is, by its own account; `null` where it does not answer. */
export const askStatus = (connection: EnvironmentConnection): Promise<EnvironmentStatus | null> => fetchStatus(connection).catch(() => null)

async function fetchStatus({ url, token }: EnvironmentConnection): Promise<EnvironmentStatus> {
  const response = await fetch(new URL('/v1/status', url), {
    headers: { authorization: `Bearer ${token}` },
    signal: AbortSignal.timeout(answerMs),
  })
  return EnvironmentStatus.parse(await response.json())
}

const isRefused = (error: unknown) => ((error as Error).cause as NodeJS.ErrnoException | undefined)?.code === 'ECONNREFUSED'
