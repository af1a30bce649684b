import { resolve } from 'node:path'
import { errorMessage } from '@aworld-train/protocol'
import { readWithVerl, type WrittenKeys } from '../config/installed-verl.ts'
import type { VerlConfigSource } from '../config/verl-config.ts'
import { type FoundPython, findPython } from '../python/find-python.ts'
import { inspectPython } from '../python/inspect-python.ts'
import { type GpuDriver, probeGpuDriver } from '../python/probe-gpu-driver.ts'
import { diagnoseConfig } from './diagnose-config.ts'
import { judgeGpus, judgeMachine, type MachineNeeds } from './judge-machine.ts'
import { readMachine } from './read-machine.ts'
import { tryImports } from './try-imports.ts'
import { toCheck, type VerlCheck } from './verl-check.ts'

export interface DiagnoseVerlOptions {
  readonly env: NodeJS.ProcessEnv
  readonly projectDirectory: string
  /** The configuration that is to train, relative paths from `projectDirectory`. */
  readonly config?: VerlConfigSource
  readonly signal?: AbortSignal | undefined
}

/** Checks the Python that trains, the GPUs and the machine; collects every problem and starts no training. */
export async function* diagnoseVerl({ env, projectDirectory, config, signal }: DiagnoseVerlOptions): AsyncGenerator<VerlCheck> {
  const found = await findPython({ env, projectDirectory, signal }).catch((error: unknown) => toProblem('python', error, signal))
  const python = 'path' in found ? found : undefined
  if ('level' in found) yield found
  else yield* pythonChecks(found)
  let needs: MachineNeeds | null = null
  if (config !== undefined) {
    const source = typeof config === 'string' ? resolve(projectDirectory, config) : config
    const verl = async (_: string | null, written: WrittenKeys) =>
      python ? await readWithVerl(written, { python: python.path, env, signal }) : null
    const options = { source, baseDirectory: projectDirectory, python: python?.report ?? null, verl, env, signal }
    const diagnosis = await diagnoseConfig(options).catch((error: unknown) => ({
      checks: [toProblem('config', error, signal)],
      needs: null,
    }))
    yield* diagnosis.checks
    needs = diagnosis.needs
  }
  let driver: GpuDriver | null = null
  try {
    driver = await probeGpuDriver({ env, signal })
  } catch (error) {
    yield toProblem('driver', error, signal)
  }
  const torch = python ? (await inspectPython(python.path, { env, torch: true, signal })).torch : null
  yield* judgeGpus(driver, torch, needs)
  yield* judgeMachine(await readMachine({ env, directory: projectDirectory }), needs)
  if (python) yield await tryImports({ python: python.path, env, signal }).catch((error: unknown) => toProblem('imports', error, signal))
}

function pythonChecks({ path, source, report, passedOver }: FoundPython): VerlCheck[] {
  const versions = ['verl', 'transformers', 'ray', 'transferqueue', 'vllm', 'sglang'].flatMap((name) =>
    report.packages[name] ? [`${name} ${report.packages[name]}`] : [],
  )
  const of = (which: (about: string) => boolean) => report.problems.filter(({ about }) => which(about))
  const earlier = passedOver.map((each) => `passed over: ${each.path} (${each.source}): ${each.reason}`)
  return [
    toCheck(
      'python',
      [`${report.version}, ${path} (${source})`, ...earlier].join('\n'),
      of((about) => about === 'python'),
    ),
    toCheck(
      'packages',
      versions.join(', '),
      of((about) => about !== 'python'),
    ),
  ]
}

function toProblem(name: string, error: unknown, signal: AbortSignal | undefined): VerlCheck {
  signal?.throwIfAborted()
  return { name, level: 'problem', message: errorMessage(error) }
}
