import { fileURLToPath } from 'node:url'
import { type LauncherEngine, siblingModule } from '@aworld-train/core'
import { kubernetesEngine } from '@aworld-train/executors/kubernetes'
import { rayEngine } from '@aworld-train/executors/ray'
import { sparkEngine } from '@aworld-train/executors/spark'

/** The engines beside `local` that start workers. `executor.engineName` is the name of one. */
export const launcherEngines: readonly LauncherEngine[] = [rayEngine, sparkEngine, kubernetesEngine]

/** Module of the process that a launcher starts as a worker. */
export const workerEntry: string = fileURLToPath(siblingModule('./worker/worker-process', import.meta.url))
