import { TrainError } from '@aworld-train/core'
import { folderCheckpoints } from '../../shared/process/folder-checkpoints.ts'

/** AReaL's checkpoints. The bridge names them when they are whole. They have weights only, without their model's configuration. */
export const arealCheckpoints = folderCheckpoints({
  prefix: 'step-',
  lastFile: null,
  frequencyKey: 'recover.freq_steps',
  exporter(directory, { model }) {
    if (model === undefined)
      throw new TrainError(
        'CONFIG_INVALID',
        'A checkpoint of AReaL has weights only; name the folder of the model that the training began with.',
      )
    return ['aworld_train_bridge.areal.export_model', '--checkpoint', directory, '--model', model]
  },
})
