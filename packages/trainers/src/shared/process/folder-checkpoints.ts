import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ExportModelOptions, TrainError, type TrainerCheckpoints } from '@aworld-train/core'
import { runProcess } from '../environment/run-process.ts'
import { withBridge } from '../python-package.ts'
import { exportFolder } from './export-folder.ts'

export interface FolderCheckpointsOptions {
  /** Name of a step's folder without the number, such as `checkpoint-`. */
  readonly prefix: string
  /** A JSON file that is written last; `null` if a folder gets its name only when it is whole. */
  readonly lastFile: string | null
  /** Key that says how often a checkpoint is written. */
  readonly frequencyKey: string
  /** The module that writes a checkpoint as a model, and its arguments besides `--target` and `--dtype`. */
  exporter(directory: string, options: ExportModelOptions): readonly string[]
}

/** Checkpoints of a framework that writes those of each step to a folder of its own. */
export function folderCheckpoints({ prefix, lastFile, frequencyKey, exporter }: FolderCheckpointsOptions): TrainerCheckpoints {
  const isWhole = (directory: string) => lastFile === null || isJson(join(directory, lastFile))

  function steps(folder: string): number[] {
    if (!existsSync(folder)) return []
    return readdirSync(folder)
      .filter((name) => name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length)) && isWhole(join(folder, name)))
      .map((name) => Number(name.slice(prefix.length)))
      .sort((a, b) => a - b)
  }

  return {
    steps,
    resumable: (folder) => steps(folder).at(-1) ?? 0,
    pathOf: (step) => `checkpoints/${prefix}${step}`,
    async exportModel(options) {
      const { python, checkpoints, target, model, dtype = 'keep', onLine, signal } = options
      const written = steps(checkpoints)
      const step = options.step ?? written.at(-1)
      if (step === undefined || !written.includes(step)) {
        const which = options.step === undefined ? 'no checkpoint' : `no checkpoint of step ${options.step}`
        const remedy =
          written.length > 0 ? `there are those of the steps ${written.join(', ')}` : `set ${frequencyKey}, and let the run reach it`
        throw new TrainError('CHECKPOINT_CORRUPT', `${checkpoints} has ${which}; ${remedy}.`)
      }
      const [module, ...arguments_] = exporter(join(checkpoints, `${prefix}${step}`), options) as [string, ...string[]]
      await exportFolder({ target, model }, async (temporary) => {
        const args = ['-W', 'ignore', '-m', module, ...arguments_, '--target', temporary, '--dtype', dtype]
        const env = { ...withBridge(process.env), CUDA_VISIBLE_DEVICES: '' }
        const { code, stderr } = await runProcess(python, args, { env, onLine, signal })
        if (code !== 0)
          throw new TrainError(
            'TRAINER_FAILED',
            `The checkpoint of step ${step} cannot be written as a model: ${stderr.trim().split('\n').at(-1)}`,
          )
      })
      return { step, directory: target }
    },
  }
}

/** Whether a file is complete. A process that is killed while it writes leaves a torn one. */
function isJson(file: string): boolean {
  try {
    JSON.parse(readFileSync(file, 'utf8'))
    return true
  } catch {
    return false
  }
}
