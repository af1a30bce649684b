import type { DrivenCheck, MachineOptions } from '@aworld-train/core'
import { checkTorch } from '@aworld-train/run'
import { askAreal } from './config/ask-areal.ts'
import { arealPython } from './python/areal-python.ts'

/** The least that AReaL takes: a group of two. */
const least = { train_dataset: { batch_size: 1 }, gconfig: { n_samples: 2 }, actor: { ppo_n_minibatches: 1 } }

/** What AReaL needs of a machine: a torch that can be imported, and whether AReaL and the bridge can. What a plan needs, AReaL's classes were asked. */
export const checkMachine = ({ python, env, signal }: MachineOptions & { readonly python: string | null }): AsyncGenerator<DrivenCheck> =>
  checkTorch({
    framework: arealPython,
    title: 'AReaL',
    ask: (interpreter) => askAreal({ configuration: least }, { python: interpreter, signal }),
    python,
    env,
    signal,
  })
