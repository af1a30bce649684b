import type { MachineCheck, MachineOptions, TrainerPlan, TrainerPython } from '@aworld-train/core'
import { inspectPython } from '../environment/inspect-python.ts'
import { createConfigurationReader } from '../process/configuration-reader.ts'
import { toProblem } from './diagnose.ts'

export interface CheckMachineOptions extends Pick<MachineOptions, 'env' | 'signal'> {
  /** A plan that the framework was imported for; `null` for none. */
  readonly plan: TrainerPlan | null
  readonly python: string | null
}

export interface CheckTorchOptions extends CheckMachineOptions {
  readonly framework: TrainerPython
  /** The framework's name, for people. */
  readonly title: string
  /** A configuration that the framework accepts. */
  readonly least: object
  /** Variables of a Python that reads a configuration. */
  readonly variables?: Readonly<Record<string, string>> | undefined
  /** What the machine lacks for a plan. */
  lacks?(): Promise<readonly string[]>
}

/**
 * Checks for `doctor` that torch can be imported and what it trains on, what a plan lacks, and that framework and bridge can be imported.
 */
export async function* checkTorch(options: CheckTorchOptions): AsyncGenerator<MachineCheck> {
  const { python, framework, title, plan, least, variables, lacks, env, signal } = options
  if (python === null) return
  try {
    const { torch } = await inspectPython(python, framework, { env, torch: true, signal })
    const devices = torch?.devices.map(({ name }) => name).join(', ')
    if (torch?.error) yield { name: 'torch', level: 'problem', message: `torch cannot be imported: ${torch.error}` }
    else yield { name: 'torch', level: 'ok', message: devices ? `trains on ${devices}` : "trains on this machine's processor, in float32" }
    for (const message of (await lacks?.()) ?? []) yield { name: 'machine', level: 'problem', message }
    const { version, problems } = plan?.version ? { version: plan.version, problems: [] } : await readLeast()
    if (problems.length > 0) yield { name: 'imports', level: 'problem', message: problems.join('\n') }
    else yield { name: 'imports', level: 'ok', message: `${title} ${version} and the bridge` }
  } catch (error) {
    yield toProblem(framework.name, error, signal)
  }

  async function readLeast() {
    const reader = createConfigurationReader({ python: python as string, name: framework.name, title, variables })
    const answer = await reader.read(least, signal)
    reader.close()
    return answer
  }
}
