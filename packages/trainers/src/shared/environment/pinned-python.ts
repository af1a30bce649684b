import { fileURLToPath } from 'node:url'
import { type GpuDriver, type PythonFacts, type PythonProblem, type SetupPlan, TrainError, type TrainerPython } from '@aworld-train/core'
import { setUpAdvice } from './find-python.ts'
import { oldestGpuDriver, runsOn } from './probe-gpu-driver.ts'
import { compareVersions, isBelow } from './versions.ts'

export interface PinnedPythonOptions {
  /** Name of the trainer in commands. */
  readonly name: string
  /** The framework's name, for people. */
  readonly title: string
  readonly distribution: string
  /** The pinned version. */
  readonly tested: string
  /** The oldest release that trains, and how earlier ones differ. */
  readonly oldest: { readonly release: readonly number[]; readonly because: string }
  /** The first release of Python that trains, and the first untested one, such as [3, 11] and [3, 13]. */
  readonly python: { readonly from: readonly number[]; readonly below: readonly number[] }
  /** Distributions that the framework and the bridge import. */
  readonly needed: readonly string[]
  /** Further distributions whose versions are read. */
  readonly inspected: readonly string[]
  readonly shown: readonly string[]
  /** Folder of the pinned requirements: `<distribution>-<tested>.txt` for a GPU, and `…-cpu.txt`. */
  readonly requirements: URL
  /** Version of the pinned torch, and the CUDA that it is built for. */
  readonly torch: string
  readonly cuda: string
  /** Remark on each environment, shown after its name. */
  readonly says?: { readonly cpu?: string; readonly gpu?: string } | undefined
  /** Finds further problems of an interpreter that has the framework. */
  readonly judge?: ((packages: PythonFacts['packages']) => readonly PythonProblem[]) | undefined
}

/** The Python of a framework whose packages are pinned for a processor and for one version of CUDA. */
export function pinnedPython(options: PinnedPythonOptions): TrainerPython {
  const { name, distribution, needed, inspected, shown, python } = options
  return {
    name,
    distribution,
    inspected: [...new Set([distribution, ...needed, ...inspected])],
    shown,
    versions: `>=${python.from.join('.')},<${python.below.join('.')}`,
    judge: (facts) => judge(options, facts),
    planSetup: (machine) => planSetup(options, machine),
  }
}

function judge({ name, title, distribution, tested, oldest, python, needed, judge }: PinnedPythonOptions, facts: PythonFacts) {
  const { version, packages } = facts
  const setUp = setUpAdvice(name)
  const problems: PythonProblem[] = []
  const refuse = (about: string, message: string) => problems.push({ level: 'error', about, message })
  const warn = (about: string, message: string) => problems.push({ level: 'warning', about, message })
  if (compareVersions(version, python.from) < 0)
    refuse(
      'python',
      `Python ${version} cannot run ${title} ${tested} with this bridge, which needs ${python.from.join('.')} or newer; ${setUp}.`,
    )
  else if (compareVersions(version, python.below) >= 0)
    warn(
      'python',
      `Python ${version} was not tested with ${title} ${tested}, which takes one below ${python.below.join('.')}; if training fails, ${setUp}.`,
    )
  const found = packages[distribution] ?? null
  if (found === null) {
    refuse(distribution, `${title} is not installed; ${setUp}.`)
    return problems
  }
  const install = `install ${distribution}==${tested}, or ${setUp}`
  if (isBelow(found, oldest.release))
    refuse(distribution, `${title} ${found} is older than ${oldest.release.join('.')}, ${oldest.because}; ${install}.`)
  else if (found !== tested) warn(distribution, `${title} ${found} was not tested, ${tested} was; if training fails, ${install}.`)
  problems.push(...(judge?.(packages) ?? []))
  for (const each of needed)
    if ((packages[each] ?? null) === null)
      refuse(each, `${each} is missing, which ${title} or the bridge needs: pip install "${each}", or ${setUp}.`)
  return problems
}

function planSetup(
  { title, distribution, tested, requirements, torch: pinned, cuda, says }: PinnedPythonOptions,
  { torch, driver }: { readonly torch: string; readonly driver: GpuDriver | null },
): SetupPlan {
  const file = (suffix: string) => fileURLToPath(new URL(`${distribution}-${tested}${suffix}.txt`, requirements))
  const onCpu = (reason: string): SetupPlan => ({
    requirements: file('-cpu'),
    arguments: ['--no-deps'],
    says: `${title} ${tested} and torch ${pinned}, which train on this machine's processor (${reason})${says?.cpu ?? ''}`,
  })
  const onGpu = (reason: string): SetupPlan => ({
    requirements: file(''),
    arguments: ['--no-deps'],
    says: `${title} ${tested} and torch ${pinned} for CUDA ${cuda} (${reason})${says?.gpu ?? ''}`,
  })
  if (torch === 'cpu') return onCpu('as asked')
  if (torch !== 'auto' && torch.replace(/^cu/, '').replace('.', '') !== cuda.replace('.', ''))
    throw new TrainError('CONFIG_INVALID', `--torch ${torch} is not known; give auto, cpu or ${cuda}, for which the pinned torch is built.`)
  if (driver && runsOn(driver.version, cuda) === false)
    throw new TrainError(
      'TRAINER_ENVIRONMENT',
      `The NVIDIA driver ${driver.version} is too old for CUDA ${cuda}, which the pinned torch is built for: update it to ${oldestGpuDriver(cuda)} or newer, or train on the processor with --torch cpu.`,
    )
  if (torch !== 'auto') return onGpu('as asked')
  return driver
    ? onGpu(`driver ${driver.version}, ${driver.gpus.length} GPU${driver.gpus.length === 1 ? '' : 's'}`)
    : onCpu('there is no NVIDIA driver')
}
