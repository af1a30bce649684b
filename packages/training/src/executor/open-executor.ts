import { resolve } from 'node:path'
import type { LauncherEngine } from '@aworld-train/core'
import { createWorkerPool, createWorkerServer, type WorkerPool, type WorkerPoolOptions } from '@aworld-train/rollout'
import type { Listener } from '../agent-side/read-listener.ts'
import type { ExecutorSettings } from '../config/executor-settings.ts'
import { readToken } from '../config/secret.ts'
import { agentIdentity } from '../inputs/agent-hash.ts'
import type { LoadedAgent } from '../inputs/loaded-agent.ts'
import { pathOf } from './check-executor.ts'
import { findLauncherEngine, isExternal, isInProcess, toLauncherSettings } from './find-launcher.ts'

/** Variables that tell a worker started here its options and its token. */
export const workerVariables = { options: 'AWORLD_TRAIN_WORKER', token: 'AWORLD_TRAIN_WORKER_TOKEN' } as const

/** Options of a worker that is started here, as JSON. */
export interface StartedWorkerOptions {
  readonly url: string
  readonly agent: string
  readonly name: string
  readonly slots: number
}

/** What starts workers, and what they run. */
export interface Launchers {
  /** Engines beside `local`. */
  readonly engines: readonly LauncherEngine[]
  /** Module that runs a worker by `workerVariables`. */
  readonly entry: string
}

export interface StartWorkersOptions extends Launchers {
  readonly settings: ExecutorSettings
  readonly agent: LoadedAgent
  /** Folder that paths of the configuration are relative to. */
  readonly directory: string
  /** Called if no worker can be had, with the reason. */
  readonly onFailed?: ((error: Error) => void) | undefined
  readonly onWarning: (warning: { readonly code: string; readonly message: string }) => void
}

/** The workers of an agent. */
export interface Workers {
  /** The pool for a server, to which workers connect. */
  readonly pool: WorkerPool
  /** The token that the server asks of workers. */
  readonly token: string
  /** Starts workers that connect to the server of the pool, unless somebody else starts them. */
  start(url: string): Promise<void>
}

export interface OpenWorkersOptions extends StartWorkersOptions, Pick<WorkerPoolOptions, 'environment' | 'fileOf'> {}

/** Opens the pool of an agent's workers; `stack` closes it. Returns `null` if agents run in this process. */
export function openWorkers(stack: AsyncDisposableStack, options: OpenWorkersOptions): Workers | null {
  const { settings, agent, directory, environment, fileOf, onWarning } = options
  if (isInProcess(settings)) return null
  const pool = stack.adopt(
    createWorkerPool({ agent: agentIdentity(agent), limits: { graceMs: settings.graceMs }, environment, fileOf, onWarning }),
    (each) => each.close(),
  )
  const token = readToken(settings.token, 'executor.token', directory)
  return {
    pool,
    token,
    async start(url) {
      if (!isExternal(settings)) await startWorkers(stack, options, { url, token, pool })
    },
  }
}

interface Coordinator extends Pick<Workers, 'pool' | 'token'> {
  readonly url: string
}

/**
 * Has the engine of the configuration start workers that connect to a coordinator; `stack` ends them. If it cannot start them, everything
 * that waits for the pool fails.
 */
async function startWorkers(
  stack: AsyncDisposableStack,
  { settings, agent, engines, directory, entry, onWarning, onFailed }: StartWorkersOptions,
  { url, token, pool }: Coordinator,
): Promise<void> {
  const engine = await findLauncherEngine(settings, engines, directory)
  const path = pathOf(agent)
  const launch = toLauncherSettings(settings, directory)
  const launcher = engine.create({
    ...launch,
    worker(name) {
      const worker: StartedWorkerOptions = { url, agent: path, name, slots: launch.slots }
      return {
        url,
        token,
        agent: path,
        command: [process.execPath, ...process.execArgv, entry],
        env: {
          // Node of the worker runs with the options of this one, like those in `execArgv`.
          ...(process.env['NODE_OPTIONS'] && { NODE_OPTIONS: process.env['NODE_OPTIONS'] }),
          ...launch.env,
          [workerVariables.options]: JSON.stringify(worker),
          [workerVariables.token]: token,
        },
      }
    },
    onWarning: (message) => onWarning({ code: 'WORKER_LOST', message }),
    onExit: (name) => pool.exit(name),
    onFailed(error) {
      pool.fail(error)
      onFailed?.(error)
    },
  })
  stack.defer(() => launcher.stop())
  await launcher.start()
}

/** The command of a worker that somebody else starts, and the variable with its token. */
export function workerCommand({ token }: ExecutorSettings, { url, agent }: { readonly url: string; readonly agent: string }) {
  const variable = typeof token === 'object' && token !== null && 'env' in token ? token.env : workerVariables.token
  return { command: `aworld-train worker --coordinator ${url} --agent ${agent} --token-env ${variable}`, variable }
}

export interface OpenExecutorOptions extends StartWorkersOptions, Pick<WorkerPoolOptions, 'environment'> {
  /** Address of the gateway and of the server that workers connect to. */
  readonly listener?: Listener | undefined
}

/** Starts workers for an agent and resolves to their pool; `stack` ends them. Resolves to `null` if agents run in this process. */
export async function openExecutor(stack: AsyncDisposableStack, options: OpenExecutorOptions): Promise<WorkerPool | null> {
  const { settings, agent, listener, onWarning } = options
  const workers = openWorkers(stack, { ...options, fileOf: (path) => resolve(agent.directory, path) })
  if (workers === null) return null
  const { pool, token } = workers
  const server = stack.adopt(await createWorkerServer(pool, { token, port: settings.port, ...listener }), (each) => each.close())
  if (isExternal(settings)) {
    const { command } = workerCommand(settings, { url: server.url, agent: agent.module ?? pathOf(agent) })
    onWarning({ code: 'CONFIG_NOTE', message: `Start workers where you like: ${command}` })
  }
  await workers.start(server.url)
  return pool
}
