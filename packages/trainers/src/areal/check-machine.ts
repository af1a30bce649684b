import type { MachineCheck } from '@aworld-train/core'
import { type CheckMachineOptions, checkTorch } from '../shared/training/check-torch.ts'
import { arealPython } from './python/areal-python.ts'

/** The smallest configuration that AReaL accepts: a group of two. */
const least = { train_dataset: { batch_size: 1 }, gconfig: { n_samples: 2 }, actor: { ppo_n_minibatches: 1 } }

/** Checks that torch, AReaL and the bridge can be imported. AReaL's classes were asked about the needs of a plan. */
export const checkMachine = (options: CheckMachineOptions): AsyncGenerator<MachineCheck> =>
  checkTorch({ ...options, framework: arealPython, title: 'AReaL', least: { configuration: least } })
