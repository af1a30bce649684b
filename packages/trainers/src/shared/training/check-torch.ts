import type { MachineCheck, MachineOptions, TrainerPython } from '@aworld-train/core'
import { inspectPython } from '../environment/inspect-python.ts'
import type { ConfigurationAnswer } from '../process/ask-configuration.ts'
import { toProblem } from './diagnose.ts'

export interface CheckTorchOptions extends Pick<MachineOptions, 'env' | 'signal'> {
  readonly python: string | null
  readonly framework: TrainerPython
  /** The framework's name, for people. */
  readonly title: string
  /** Has the framework read a configuration that it accepts. */
  ask(python: string): Promise<ConfigurationAnswer>
  /** What the machine lacks for a plan. */
  lacks?(): Promise<readonly string[]>
}

/**
 * Checks for `doctor` that torch can be imported and what it trains on, what a plan lacks, and that framework and bridge can be imported.
 */
export async function* checkTorch({ python, framework, title, ask, lacks, env, signal }: CheckTorchOptions): AsyncGenerator<MachineCheck> {
  if (python === null) return
  try {
    const { torch } = await inspectPython(python, framework, { env, torch: true, signal })
    const devices = torch?.devices.map(({ name }) => name).join(', ')
    if (torch?.error) yield { name: 'torch', level: 'problem', message: `torch cannot be imported: ${torch.error}` }
    else yield { name: 'torch', level: 'ok', message: devices ? `trains on ${devices}` : "trains on this machine's processor, in float32" }
    for (const message of (await lacks?.()) ?? []) yield { name: 'machine', level: 'problem', message }
    const { version, problems } = await ask(python)
    if (problems.length > 0) yield { name: 'imports', level: 'problem', message: problems.join('\n') }
    else yield { name: 'imports', level: 'ok', message: `${title} ${version} and the bridge` }
  } catch (error) {
    yield toProblem(framework.name, error, signal)
  }
}
