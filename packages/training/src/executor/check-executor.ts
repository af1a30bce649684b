import { resolve } from 'node:path'
import { type LauncherEngine, TrainError } from '@aworld-train/core'
import { isLoopback } from '@aworld-train/http'
import type { ExecutorSettings } from '../config/executor-settings.ts'
import { readSecret } from '../config/secret.ts'
import { requireNamed } from '../inputs/agent-hash.ts'
import type { LoadedAgent } from '../inputs/loaded-agent.ts'
import { findLauncherEngine, isExternal, isInProcess, toLauncherSettings } from './find-launcher.ts'

export interface ExecutorCheck {
  readonly settings: ExecutorSettings
  readonly agent: LoadedAgent
  /** Engines beside `local`. */
  readonly engines: readonly LauncherEngine[]
  /** Folder that paths of the configuration are relative to. */
  readonly directory: string
  /** Servers that workers must reach, by the section of the configuration that sets their address. */
  readonly listeners: Readonly<Record<string, { readonly host: string; readonly publicUrl: string | null }>>
}

/** Hosts that mean all addresses of a machine. They tell nobody how to reach it. */
const allAddresses: ReadonlySet<string> = new Set(['0.0.0.0', '::'])

/** Path of the agent by which another process finds it. Throws CONFIG_INVALID for a live object. */
export function pathOf(agent: LoadedAgent): string {
  requireNamed(agent)
  const [first] = agent.files as [string, ...string[]]
  const name = agent.module?.includes('#') && agent.files.length === 1 ? agent.module.slice(agent.module.indexOf('#')) : ''
  return `${resolve(first)}${name}`
}

/**
 * Describes in sentences what will be started. Rejects with CONFIG_INVALID if workers cannot be started for this agent or could not reach
 * the coordinator.
 */
export async function checkExecutor({ settings, agent, engines, directory, listeners }: ExecutorCheck): Promise<readonly string[]> {
  if (isInProcess(settings)) return []
  if (isExternal(settings)) {
    if (settings.token === null)
      throw new TrainError(
        'CONFIG_INVALID',
        'executor.engineName "external" needs executor.token, such as { env: WORKER_TOKEN }: workers that somebody else starts connect with it.',
      )
    readSecret(settings.token, 'executor.token', directory)
    pathOf(agent)
    return ['workers that somebody else starts, with "aworld-train worker"']
  }
  pathOf(agent)
  const engine = await findLauncherEngine(settings, engines, directory)
  const launcherSettings = toLauncherSettings(settings, directory)
  if (engine.isElsewhere(launcherSettings))
    for (const [section, listener] of Object.entries(listeners)) requireReachable(engine.name, section, listener)
  const launcher = engine.create({
    ...launcherSettings,
    worker() {
      throw new Error('A launcher asks for its workers when it starts them, not when it plans.')
    },
    onWarning() {},
    onExit() {},
    onFailed() {},
  })
  return await launcher.plan()
}

/** Throws CONFIG_INVALID for a listener that workers on other machines cannot reach. */
function requireReachable(engine: string, section: string, { host, publicUrl }: ExecutorCheck['listeners'][string]): void {
  if (publicUrl !== null) return
  const start = `executor.engineName "${engine}" starts workers on other machines, and ${section}.host is ${host}, `
  if (isLoopback(host)) {
    const remedy = `set ${section}.host and ${section}.tls, or ${section}.publicUrl where a tunnel or a proxy leads here`
    throw new TrainError('CONFIG_INVALID', `${start}which they do not reach; ${remedy}.`)
  }
  if (!allAddresses.has(host)) return
  throw new TrainError(
    'CONFIG_INVALID',
    `${start}which names no machine; set ${section}.publicUrl to the address by which they reach this one.`,
  )
}
