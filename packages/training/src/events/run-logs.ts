import { displayPath, type RunEvent } from '@aworld-train/core'
import type { OwnedRunStore } from '@aworld-train/store'
import type { LocalConfig } from '../config/local-config.ts'
import { createRunMetrics, type RunMetrics } from './run-metrics.ts'
import { openTensorBoardLog, tensorBoardDirectory } from './tensorboard-log.ts'

export interface RunLogsOptions {
  /** The run directory. */
  readonly path: string
  /** Name of the run. */
  readonly name: string
  readonly settings: Pick<LocalConfig, 'logging' | 'projectName' | 'experimentName'>
  readonly store: OwnedRunStore
  /** Steps after this one are trained again. Default: none. */
  readonly resumedFromStep?: number | undefined
  readonly emit: (event: RunEvent) => void
}

/** The numbers of a training, kept for others as they come: metrics for Prometheus and, where the configuration asks for it, TensorBoard. */
export interface RunLogs extends RunMetrics {
  /** Where the numbers are, for the first event of the run. */
  readonly details: Readonly<Record<string, string>>
}

/** Opens the logs that a configuration asks for; `stack` closes them. */
export async function openRunLogs(stack: AsyncDisposableStack, options: RunLogsOptions): Promise<RunLogs> {
  const { path, name, settings, store, resumedFromStep, emit } = options
  const metrics = createRunMetrics(store)
  if (!settings.logging.includes('tensorboard')) return { ...metrics, details: {} }
  const directory = tensorBoardDirectory(path, {
    project: settings.projectName ?? 'aworld-train',
    experiment: settings.experimentName ?? name,
  })
  const onWarning = (message: string) => emit({ type: 'warning-raised', at: Date.now(), code: 'TENSORBOARD_FAILED', message })
  const log = stack.adopt(await openTensorBoardLog({ directory, resumedFromStep, store, onWarning }), (each) => each.close())
  return {
    registry: metrics.registry,
    read(event) {
      metrics.read(event)
      log.read(event)
    },
    details: { tensorboard: `tensorboard --logdir ${displayPath(directory)}` },
  }
}
