import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { TrainError, type TrainerPython } from '@aworld-train/core'
import { inspectPython, type PythonReport } from './inspect-python.ts'
import { makeEnvironment } from './make-environment.ts'
import { probeGpuDriver } from './probe-gpu-driver.ts'

export interface SetUpOptions {
  /** Folder of the environment, usually that of `setupFolder` in a project. */
  readonly directory: string
  /** Python's version, such as `3.12`. Default: whichever of the trainer's versions uv finds. */
  readonly python?: string | undefined
  /** `auto` (by the driver that `nvidia-smi` names), `cpu`, or a version of CUDA such as `13.0`. */
  readonly torch?: string | undefined
  readonly env?: NodeJS.ProcessEnv | undefined
  readonly onProgress?: ((line: string) => void) | undefined
  readonly signal?: AbortSignal | undefined
}

export interface TrainerEnvironment {
  /** Absolute path of the environment's interpreter. */
  readonly python: string
  /** False if the same environment already existed. */
  readonly isNew: boolean
  readonly report: PythonReport
}

/** Makes the environment that a trainer trains in, of pinned packages. Repeating it changes nothing. Throws TRAINER_ENVIRONMENT. */
export async function makeTrainerEnvironment(trainer: TrainerPython, options: SetUpOptions): Promise<TrainerEnvironment> {
  const { directory, python = trainer.versions, torch = 'auto', env = process.env, onProgress, signal } = options
  const driver = torch === 'cpu' ? null : await probeGpuDriver({ env, signal })
  const plan = trainer.planSetup({ torch, driver })
  const stamp = createHash('sha256')
    .update(await readFile(plan.requirements))
    .update(JSON.stringify([plan.arguments, python]))
    .digest('hex')
  onProgress?.(plan.says)
  const { python: interpreter, isNew } = await makeEnvironment({
    directory,
    python,
    installs: [[...plan.arguments, '--requirement', plan.requirements]],
    stamp,
    env,
    onProgress,
    signal,
    async verify(path) {
      onProgress?.('Looking at what was installed')
      const report = await inspectPython(path, trainer, { env: alone(env), torch: true, signal })
      const refusals = report.problems.filter(({ level }) => level === 'error').map(({ message }) => message)
      if (report.torch?.error) refusals.push(`torch cannot be imported: ${report.torch.error}`)
      if (refusals.length > 0) throw new TrainError('TRAINER_ENVIRONMENT', `What was installed cannot train: ${refusals.join('\n')}`)
    },
  })
  return { python: interpreter, isNew, report: await inspectPython(interpreter, trainer, { env: alone(env), signal }) }
}

/** Variables without PYTHONPATH and PYTHONHOME, which would add to the environment. */
function alone(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { PYTHONPATH: _, PYTHONHOME: __, ...rest } = env
  return rest
}
