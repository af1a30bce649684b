import { didYouMean, type LauncherEngine, type LauncherSettings, TrainError } from '@aworld-train/core'
import type { ExecutorSettings } from '../config/executor-settings.ts'
import { loadExport } from '../inputs/load-export.ts'
import { createLocalLauncher } from './local-launcher.ts'

export const localEngine: LauncherEngine = { name: 'local', isElsewhere: () => false, create: createLocalLauncher }

/** Whether agents run in the process of their coordinator. */
export const isInProcess = ({ engineName, cls, workerNum }: ExecutorSettings): boolean =>
  engineName === 'local' && cls === null && workerNum === null

/** Whether somebody else starts the workers. */
export const isExternal = ({ engineName, cls }: ExecutorSettings): boolean => engineName === 'external' && cls === null

/** Most rollouts at once: one if the order of rollouts matters, else `concurrency`. */
export const concurrencyOf = ({ sequenceDependent }: ExecutorSettings, concurrency: number): number => (sequenceDependent ? 1 : concurrency)

/** Finds the engine that a configuration names, or loads its own launcher. Throws CONFIG_INVALID, and the errors of `loadExport`. */
export async function findLauncherEngine(
  { engineName, cls }: ExecutorSettings,
  engines: readonly LauncherEngine[],
  directory: string,
): Promise<LauncherEngine> {
  if (cls !== null) {
    const create = await loadExport(cls, directory)
    if (typeof create === 'function') return { name: cls, isElsewhere: () => false, create: create as LauncherEngine['create'] }
    throw new TrainError(
      'CONFIG_INVALID',
      `executor.cls "${cls}" is no function; export one that takes a WorkerLaunch and returns a Launcher.`,
    )
  }
  const all = [...engines, localEngine]
  const engine = all.find(({ name }) => name === engineName)
  if (engine) return engine
  const names = [...new Set(['local', ...engines.map(({ name }) => name), 'external'])]
  const message = `executor.engineName is "${engineName}": must be one of ${names.join(', ')}.${didYouMean(engineName, names)} A launcher of your own is named by executor.cls.`
  throw new TrainError('CONFIG_INVALID', message)
}

/** The settings as a launcher reads them. */
export const toLauncherSettings = (
  { address, workerNum, slots, resources, env, options }: ExecutorSettings,
  directory: string,
): LauncherSettings => ({ address, workerNum: workerNum ?? 1, slots, resources, env, options, directory })
