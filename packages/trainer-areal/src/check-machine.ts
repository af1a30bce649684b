import type { DrivenCheck, DrivenPlan, MachineOptions } from '@aworld-train/core'
import { inspectPython } from '@aworld-train/python-bridge'
import { toProblem } from '@aworld-train/run'
import { askAreal } from './config/ask-areal.ts'
import { arealPython } from './python/areal-python.ts'

/** The least that AReaL takes: a group of two. */
const least = { train_dataset: { batch_size: 1 }, gconfig: { n_samples: 2 }, actor: { ppo_n_minibatches: 1 } }

/** What AReaL needs of a machine: a torch that can be imported, and whether AReaL and the bridge can. What a plan needs, AReaL's classes were asked. */
export async function* checkMachine({
  python,
  env,
  signal,
}: MachineOptions & { readonly plan: DrivenPlan | null; readonly python: string | null }): AsyncGenerator<DrivenCheck> {
  if (python === null) return
  try {
    const { torch } = await inspectPython(python, arealPython, { env, torch: true, signal })
    const devices = torch?.devices.map(({ name }) => name).join(', ')
    if (torch?.error) yield { name: 'torch', level: 'problem', message: `torch cannot be imported: ${torch.error}` }
    else yield { name: 'torch', level: 'ok', message: devices ? `trains on ${devices}` : "trains on this machine's processor, in float32" }
    const { version, problems } = await askAreal({ configuration: least }, { python, signal })
    if (problems.length > 0) yield { name: 'imports', level: 'problem', message: problems.join('\n') }
    else yield { name: 'imports', level: 'ok', message: `AReaL ${version} and the bridge` }
  } catch (error) {
    yield toProblem('areal', error, signal)
  }
}
