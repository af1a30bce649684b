import { randomBytes } from 'node:crypto'
import { resolve } from 'node:path'
import type { LauncherEngine } from '@aworld-train/core'
import { createWorkerPool, createWorkerServer, type WorkerPool, type WorkerPoolOptions } from '@aworld-train/rollout'
import type { Listener } from '../agent-side/policy-gateway.ts'
import type { ExecutorSettings } from '../config/executor-settings.ts'
import { readSecret } from '../config/secret.ts'
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

export interface CoordinatorAddress {
  readonly url: string
  readonly token: string | null
}

/**
 * Has the engine of the configuration start workers that connect to a coordinator; `stack` ends them. If it cannot start them, everything
 * that waits for `pool` fails.
 */
export async function startWorkers(
  stack: AsyncDisposableStack,
  { settings, agent, engines, directory, entry, onWarning, onFailed }: StartWorkersOptions,
  { url, token }: CoordinatorAddress,
  pool: Pick<WorkerPool, 'exit' | 'fail'>,
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
          ...(token !== null && { [workerVariables.token]: token }),
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

/** Opens the pool that the workers of an agent connect to; `stack` closes it. Returns `null` if agents run in this process. */
export function openWorkerPool(
  stack: AsyncDisposableStack,
  { settings, agent, ...options }: Pick<StartWorkersOptions, 'settings' | 'agent'> & Omit<WorkerPoolOptions, 'agent' | 'limits'>,
): WorkerPool | null {
  if (isInProcess(settings)) return null
  const pool = createWorkerPool({ ...options, agent: agentIdentity(agent), limits: { graceMs: settings.graceMs } })
  return stack.adopt(pool, (each) => each.close())
}

export interface OpenExecutorOptions extends StartWorkersOptions {
  /** Address of the gateway and of the server that workers connect to. */
  readonly listener?: Listener | undefined
}

/** Starts workers for an agent and resolves to their pool; `stack` ends them. Resolves to `null` if agents run in this process. */
export async function openExecutor(stack: AsyncDisposableStack, options: OpenExecutorOptions): Promise<WorkerPool | null> {
  const { settings, agent, listener, onWarning } = options
  const pool = openWorkerPool(stack, { settings, agent, fileOf: (path) => resolve(agent.directory, path), onWarning })
  if (pool === null) return null
  const token =
    settings.token === null ? randomBytes(32).toString('base64url') : readSecret(settings.token, 'executor.token', options.directory)
  const server = stack.adopt(await createWorkerServer(pool, { token, port: settings.port, ...listener }), (each) => each.close())
  if (isExternal(settings)) {
    const { command } = workerCommand(settings, { url: server.url, agent: agent.module ?? pathOf(agent) })
    onWarning({ code: 'CONFIG_NOTE', message: `Start workers where you like: ${command}` })
  } else await startWorkers(stack, options, { url: server.url, token }, pool)
  return pool
}
