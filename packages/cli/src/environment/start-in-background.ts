import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { TrainError } from '@aworld-train/core'
import { type EnvironmentConnection, readConnection } from '@aworld-train/environment'
import { type EnvironmentFiles, makeEnvironmentFolder } from './environment-files.ts'

/** How long the environment may take to listen; it tries its jail first. */
const startMs = 60_000
const logTailBytes = 2_000

/**
 * Runs this program again with `args` in a process that outlives this one, with its notices in the log, and resolves to its connection when
 * it listens. Rejects with ENVIRONMENT_START_FAILED and the end of the log if it ends before.
 */
export async function startInBackground(
  files: EnvironmentFiles,
  args: readonly string[],
  signal: AbortSignal,
): Promise<EnvironmentConnection> {
  makeEnvironmentFolder(files)
  const log = openSync(files.log, 'w', 0o600)
  const child = spawn(process.execPath, [...process.execArgv, process.argv[1] as string, ...args], {
    detached: true,
    stdio: ['ignore', 'ignore', log],
  })
  closeSync(log)
  const settled = new AbortController()
  const ended = new Promise<string>((resolve) => {
    child.once('error', ({ message }) => resolve(message))
    child.once('exit', (code, name) => resolve(name === null ? `exit code ${code}` : name))
  })
  const late = AbortSignal.any([signal, settled.signal, AbortSignal.timeout(startMs)])
  const connected = async () => {
    while (!late.aborted) {
      const connection = readConnection(files.folder)
      if (connection?.pid === child.pid) return connection
      await sleep(25, undefined, { signal: late }).catch(() => {})
    }
    return null
  }
  const started = await Promise.race([connected(), ended])
  settled.abort()
  if (started !== null && typeof started === 'object') {
    child.unref()
    return started
  }
  child.kill('SIGTERM')
  signal.throwIfAborted()
  const tail = readFileSync(files.log, 'utf8').slice(-logTailBytes).trim()
  const reason = started === null ? `it did not listen within ${startMs / 1_000} s` : started
  throw new TrainError('ENVIRONMENT_START_FAILED', `The environment did not start (${reason}); ${files.log} ends with:\n${tail}`)
}
