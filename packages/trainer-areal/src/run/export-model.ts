import { join } from 'node:path'
import type { ExportedModel, ExportModelOptions } from '@aworld-train/core'
import { TrainError } from '@aworld-train/protocol'
import { exportFolder, runProcess, withBridge } from '@aworld-train/python-bridge'
import { checkpointSteps } from './checkpoints.ts'

/** Writes a checkpoint of AReaL as a Hugging Face folder. */
export async function exportArealModel(options: ExportModelOptions): Promise<ExportedModel> {
  const { python, checkpoints, target, model, dtype = 'keep', onLine, signal } = options
  const steps = checkpointSteps(checkpoints)
  const step = options.step ?? steps.at(-1)
  if (step === undefined || !steps.includes(step)) {
    const which = options.step === undefined ? 'no checkpoint' : `no checkpoint of step ${options.step}`
    const remedy =
      steps.length > 0 ? `there are those of the steps ${steps.join(', ')}` : 'set recover.freq_steps, and let the run reach it'
    throw new TrainError('CHECKPOINT_CORRUPT', `${checkpoints} has ${which}; ${remedy}.`)
  }
  if (model === undefined)
    throw new TrainError(
      'CONFIG_INVALID',
      'A checkpoint of AReaL has weights only; name the folder of the model that the training began with.',
    )
  await exportFolder({ target, model }, async (temporary) => {
    const places = ['--checkpoint', join(checkpoints, `step-${step}`), '--model', model, '--target', temporary]
    const args = ['-W', 'ignore', '-m', 'aworld_train_bridge.areal.export_model', ...places, '--dtype', dtype]
    const env = { ...withBridge(process.env), CUDA_VISIBLE_DEVICES: '' }
    const { code, stderr } = await runProcess(python, args, { env, onLine, signal })
    if (code !== 0)
      throw new TrainError(
        'TRAINER_FAILED',
        `The checkpoint of step ${step} cannot be written as a model: ${stderr.trim().split('\n').at(-1)}`,
      )
  })
  return { step, directory: target }
}
