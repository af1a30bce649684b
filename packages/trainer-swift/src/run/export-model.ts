import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { ExportedModel, ExportModelOptions } from '@aworld-train/core'
import { TrainError } from '@aworld-train/protocol'
import { exportFolder, runProcess, withBridge } from '@aworld-train/python-bridge'
import { checkpointSteps, resumableStep } from './checkpoints.ts'

/** Writes a checkpoint of ms-swift as a Hugging Face folder; an adapter is merged into the model that it was trained on. */
export async function exportSwiftModel(options: ExportModelOptions): Promise<ExportedModel> {
  const { python, checkpoints, target, model, dtype = 'keep', onLine, signal } = options
  const step = options.step ?? resumableStep(checkpoints)
  const directory = join(checkpoints, `checkpoint-${step}`)
  if (!existsSync(join(directory, 'trainer_state.json'))) {
    const steps = checkpointSteps(checkpoints)
    const which = options.step === undefined ? 'no checkpoint' : `no checkpoint of step ${options.step}`
    const remedy = steps.length > 0 ? `there are those of the steps ${steps.join(', ')}` : 'set save_steps, and let the run reach it'
    throw new TrainError('CHECKPOINT_CORRUPT', `${checkpoints} has ${which}; ${remedy}.`)
  }
  await exportFolder({ target, model }, async (temporary) => {
    const args = [
      '-W',
      'ignore',
      '-m',
      'aworld_train_bridge.hugging_face.export_model',
      '--checkpoint',
      directory,
      '--target',
      temporary,
      '--dtype',
      dtype,
    ]
    const env = {
      ...withBridge(process.env),
      CUDA_VISIBLE_DEVICES: '',
    }
    const { code, stderr } = await runProcess(python, args, { env, onLine, signal })
    if (code !== 0)
      throw new TrainError(
        'TRAINER_FAILED',
        `The checkpoint ${directory} cannot be written as a model: ${stderr.trim().split('\n').at(-1)}`,
      )
  })
  return { step, directory: target }
}
