import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import type { TrainerCommand, TrainerStart } from '@aworld-train/core'
import { bridgeEnvironment } from '../../shared/process/bridge-environment.ts'
import { formatOverride } from '../config/hydra-override.ts'
import { clusterAddress, withoutOwnRay } from '../config/own-ray.ts'
import type { VerlPlan } from '../config/verl-config.ts'
import { exportedVariables, workerEnvironment, workerVariables } from '../config/worker-variables.ts'
import { verlPluginModule } from '../python/bridge-names.ts'
import { workerInterpreter } from './worker-interpreter.ts'

/** Prefixes of variables that verl and Ray read. */
const prefixes = ['AWORLD_TRAIN_SMOKE', 'RAY_', 'VERL_']

/** The command that starts verl: its overrides with those of this launch, in the environment of the bridge. */
export function verlCommand(plan: Pick<VerlPlan, 'overrides' | 'environment'>, start: TrainerStart): TrainerCommand {
  const { python, bridge, inherited } = start
  const joins = clusterAddress(inherited['RAY_ADDRESS']) !== null
  // Ray keeps its session in this folder. Its path is short, because sockets are below it.
  const rayDirectory = joins ? null : join(shortTemporary(tmpdir()), `aworld-train-ray-${bridge.incarnation.slice(0, 8)}`)
  const temporary = rayDirectory === null ? null : join(rayDirectory, 'tmp')
  const environment = environmentOf(plan.environment, temporary, start)
  const overrides = [
    ...(joins ? withoutOwnRay(plan.overrides) : plan.overrides),
    formatOverride('hydra.run.dir', join(bridge.path, 'hydra')),
    ...(rayDirectory === null ? [] : [formatOverride('ray_kwargs.ray_init._temp_dir', rayDirectory, '++')]),
  ]
  return {
    command: [
      python,
      '-m',
      'verl.trainer.main_ppo',
      ...overrides,
      ...workerInterpreter(python, overrides),
      ...workerOverrides(environment, plan.environment),
    ],
    environment,
    folders: temporary === null ? [] : [temporary],
    temporary: rayDirectory,
  }
}

function environmentOf(
  planned: Readonly<Record<string, string>>,
  temporary: string | null,
  { bridge, inherited }: TrainerStart,
): Record<string, string> {
  const environment = bridgeEnvironment(bridge, {
    inherited,
    prefixes,
    ownVariables: { ...temporaryFiles(temporary, planned), ...planned },
  })
  const modules = [verlPluginModule, ...(environment['VERL_USE_EXTERNAL_MODULES'] ?? '').split(',')].filter(Boolean)
  return {
    ...environment,
    HYDRA_FULL_ERROR: '1',
    // Names of Ray's processes would be written over their environment, by which they are found.
    SPT_NOENV: '1',
    RAY_USAGE_STATS_ENABLED: environment['RAY_USAGE_STATS_ENABLED'] ?? '0',
    VERL_USE_EXTERNAL_MODULES: [...new Set(modules)].join(','),
    VERL_FILE_LOGGER_PATH: bridge.metricsFile,
  }
}

/**
 * Variables for temporary files. verl leaves a lock file for every part of a checkpoint there, while compiled code of torch stays for the
 * next run.
 */
function temporaryFiles(temporary: string | null, planned: Readonly<Record<string, string>>): Record<string, string> {
  if (temporary === null) return {}
  if (planned['TORCH_COMPILE_DISABLE'] === '1') return { TMPDIR: temporary }
  const compiled = join(tmpdir(), `torchinductor_${userInfo().username.replace(/[\\/:*?"<>|]/g, '_')}`)
  return { TMPDIR: temporary, TORCHINDUCTOR_CACHE_DIR: process.env['TORCHINDUCTOR_CACHE_DIR'] ?? compiled }
}

/**
 * Overrides for the variables of workers, with plain values, because verl 0.9 passes Ray's runtime environment on without resolving
 * references in it.
 */
function workerOverrides(environment: Readonly<Record<string, string>>, ownVariables: Readonly<Record<string, string>>): string[] {
  return [...exportedVariables(ownVariables), ...workerVariables].map((name) =>
    formatOverride(`${workerEnvironment}.${name}`, environment[name] ?? '', '++'),
  )
}

/** The folder, or `/tmp` if its path is too long: a socket's has at most 107 bytes, and Ray's (2.60) take 90 below the session's folder. */
export function shortTemporary(folder: string): string {
  return Buffer.byteLength(folder) + 90 <= 107 ? folder : '/tmp'
}
