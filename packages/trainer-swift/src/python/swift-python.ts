import { fileURLToPath } from 'node:url'
import type { DrivenPython, GpuDriver, PythonFacts, PythonProblem, SetupPlan } from '@aworld-train/core'
import { TrainError } from '@aworld-train/protocol'
import { compareVersions, isBelow, oldestGpuDriver, runsOn, setUpAdvice } from '@aworld-train/python-bridge'

const tested = '4.6.0'
const setUp = setUpAdvice('swift')
/** CUDA of the torch that the pinned packages are for. */
const pinnedCuda = '13.0'
/** What ms-swift and the bridge import; `msgspec` is missing from ms-swift's own requirements. */
const needed = ['torch', 'transformers', 'datasets', 'accelerate', 'trl', 'peft', 'msgspec', 'aiohttp']

function judge({ version, packages }: PythonFacts): PythonProblem[] {
  const problems: PythonProblem[] = []
  const refuse = (about: string, message: string) => problems.push({ level: 'error', about, message })
  if (compareVersions(version, [3, 11]) < 0)
    refuse('python', `Python ${version} cannot run ms-swift ${tested} with this bridge, which needs 3.11 or newer; ${setUp}.`)
  const swift = packages['ms-swift'] ?? null
  if (swift === null) {
    refuse('ms-swift', `ms-swift is not installed; ${setUp}.`)
    return problems
  }
  if (isBelow(swift, [4, 6]))
    refuse('ms-swift', `ms-swift ${swift} is older than 4.6, whose rollouts carry no token ids; install ms-swift==${tested}, or ${setUp}.`)
  else if (swift !== tested)
    problems.push({
      level: 'warning',
      about: 'ms-swift',
      message: `ms-swift ${swift} was not tested, ${tested} was; if training fails, install ms-swift==${tested}, or ${setUp}.`,
    })
  const trl = packages['trl'] ?? null
  if (trl !== null && !isBelow(trl, [1, 0]))
    refuse('trl', `TRL ${trl} is another trainer's: ms-swift needs one below 1.0, so an environment of its own; ${setUp}.`)
  for (const name of needed)
    if ((packages[name] ?? null) === null)
      refuse(name, `${name} is missing, which ms-swift or the bridge needs: pip install "${name}", or ${setUp}.`)
  return problems
}

const requirementsFile = (name: string) => fileURLToPath(new URL(`../../requirements/${name}`, import.meta.url))

function planSetup({ torch, driver }: { readonly torch: string; readonly driver: GpuDriver | null }): SetupPlan {
  const onCpu = (reason: string): SetupPlan => ({
    requirements: requirementsFile('ms-swift-4.6.0-cpu.txt'),
    arguments: ['--no-deps'],
    says: `ms-swift ${tested} and torch 2.13.0, which train on this machine's processor (${reason})`,
  })
  const onGpu = (reason: string): SetupPlan => ({
    requirements: requirementsFile('ms-swift-4.6.0.txt'),
    arguments: ['--no-deps'],
    says: `ms-swift ${tested} and torch 2.13.0 for CUDA ${pinnedCuda} (${reason})`,
  })
  if (torch === 'cpu') return onCpu('as asked')
  if (torch !== 'auto' && !/^(?:cu)?13\.?0$/.test(torch))
    throw new TrainError(
      'CONFIG_INVALID',
      `--torch ${torch} is not known; give auto, cpu or ${pinnedCuda}, for which the pinned torch is built.`,
    )
  if (driver && runsOn(driver.version, pinnedCuda) === false)
    throw new TrainError(
      'TRAINER_ENVIRONMENT',
      `The NVIDIA driver ${driver.version} is too old for CUDA ${pinnedCuda}, which the pinned torch is built for: update it to ${oldestGpuDriver(pinnedCuda)} or newer, or train on the processor with --torch cpu.`,
    )
  if (torch !== 'auto') return onGpu('as asked')
  return driver
    ? onGpu(`driver ${driver.version}, ${driver.gpus.length} GPU${driver.gpus.length === 1 ? '' : 's'}`)
    : onCpu('there is no NVIDIA driver')
}

export const swiftPython: DrivenPython = {
  name: 'swift',
  distribution: 'ms-swift',
  inspected: ['ms-swift', ...needed, 'flash-attn'],
  shown: ['ms-swift', 'trl', 'torch', 'transformers', 'peft'],
  versions: '>=3.11,<3.13',
  judge,
  planSetup,
}
