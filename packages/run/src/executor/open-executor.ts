import { randomBytes } from 'node:crypto'
import { resolve } from 'node:path'
import type { Launcher, WorkerLaunch } from '@aworld-train/core'
import { TrainError } from '@aworld-train/protocol'
import { createWorkerPool, createWorkerServer, type WorkerPool } from '@aworld-train/rollout'
import type { ExecutorSettings } from '@aworld-train/training'
import { agentHash } from '../inputs/agent-hash.ts'
import type { LoadedAgent } from '../inputs/loaded-agent.ts'
import { createLocalLauncher } from './local-launcher.ts'

/** Whether agents run in the process of their coordinator. */
export const isInProcess = ({ engineName, workerNum, reuseProcess }: ExecutorSettings): boolean =>
  engineName === 'local' && workerNum === null && reuseProcess

/** Variables by which a worker that is started here knows what it is. */
export const workerVariables = { options: 'AWORLD_TRAIN_WORKER', token: 'AWORLD_TRAIN_WORKER_TOKEN' } as const

/** What a worker that is started here is told, as JSON. */
export interface StartedWorkerOptions {
  readonly url: string
  readonly agent: string
  readonly name: string
  readonly slots: number
}

export interface OpenExecutorOptions {
  readonly settings: ExecutorSettings
  readonly agent: LoadedAgent
  /** Module that runs a worker, as `workerVariables` say. */
  readonly entry: string
  readonly onWarning: (warning: { readonly code: string; readonly message: string }) => void
}

/** The agent as another process finds it. Throws CONFIG_INVALID for a live object. */
function pathOf(agent: LoadedAgent): string {
  agentHash(agent)
  const [first] = agent.files as [string, ...string[]]
  const name = agent.module?.includes('#') && agent.files.length === 1 ? agent.module.slice(agent.module.indexOf('#')) : ''
  return `${resolve(first)}${name}`
}

/** Throws CONFIG_INVALID where workers cannot be started for this agent. */
export function checkExecutor(settings: ExecutorSettings, agent: LoadedAgent): void {
  if (isInProcess(settings)) return
  if (settings.engineName === 'external') {
    throw new TrainError(
      'CONFIG_INVALID',
      'executor.engineName "external" is for "aworld-train serve", which workers of other machines reach; train with engineName "local".',
    )
  }
  pathOf(agent)
}

/** Starts workers for an agent and resolves to them; `stack` ends them. `null` where agents run in this process. */
export async function openExecutor(stack: AsyncDisposableStack, options: OpenExecutorOptions): Promise<WorkerPool | null> {
  const { settings, agent, entry, onWarning } = options
  if (isInProcess(settings)) return null
  checkExecutor(settings, agent)
  const { slots, graceMs } = settings
  const pool = stack.adopt(createWorkerPool({ agentHash: agentHash(agent), limits: { graceMs }, onWarning }), (each) => each.close())
  const token = randomBytes(32).toString('base64url')
  const { url } = stack.adopt(await createWorkerServer(pool, token), (each) => each.close())
  const launch: WorkerLaunch = {
    workerNum: settings.workerNum ?? 1,
    slots,
    worker(name) {
      const worker: StartedWorkerOptions = { url, agent: pathOf(agent), name, slots }
      return {
        command: [process.execPath, ...process.execArgv, entry],
        env: { [workerVariables.options]: JSON.stringify(worker), [workerVariables.token]: token },
      }
    },
    onWarning: (message) => onWarning({ code: 'WORKER_LOST', message }),
    onFailed: pool.fail,
  }
  const launcher: Launcher = stack.adopt(createLocalLauncher(launch), (each) => each.stop())
  await launcher.start()
  return pool
}
