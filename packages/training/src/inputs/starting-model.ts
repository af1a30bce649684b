import { existsSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { TrainError } from '@aworld-train/core'
import type { TrainingPlan } from './training-plan.ts'

export interface StartingModelNames {
  /** The model that is named, and the configuration's key of it. */
  readonly model: string | null
  readonly key: string
  /** Folder that the model is relative to. */
  readonly directory: string
  readonly warmUp: string | null
  readonly fromScratch: boolean | undefined
  /** Whether a model may be a name on the Hugging Face Hub. */
  readonly takesHubNames: boolean
}

/**
 * Finds the model that a training begins with: a folder, a name on the Hugging Face Hub, or `null` if a warm-up makes it. Throws
 * CONFIG_INVALID.
 */
export function findStartingModel({
  model,
  key,
  directory,
  warmUp,
  fromScratch = false,
  takesHubNames,
}: StartingModelNames): Pick<TrainingPlan, 'model' | 'warmUp'> {
  if (fromScratch && warmUp === null)
    throw new TrainError('CONFIG_INVALID', 'There is no warm-up to start from; name one in model.warmUp, or leave --from-scratch out.')
  if (model === null && warmUp === null) {
    const hub = takesHubNames ? ', or a model of the Hugging Face hub,' : ''
    throw new TrainError('CONFIG_INVALID', `There is no model to train; name a folder${hub} in ${key}.`)
  }
  if (model === null || fromScratch) return { model: null, warmUp }
  const folder = resolve(directory, model)
  if (existsSync(join(folder, 'config.json'))) return { model: folder, warmUp }
  if (takesHubNames && /^\w[\w.-]*\/[\w.-]+$/.test(model) && !existsSync(folder)) return { model, warmUp }
  const what = existsSync(folder) && statSync(folder).isDirectory() ? 'has no config.json' : 'is not there'
  throw new TrainError('CONFIG_INVALID', `The model folder ${folder} ${what}; correct ${key}, or make one with initModel().`)
}
