import { fileURLToPath } from 'node:url'
import type { DrivenPython, GpuDriver, PythonFacts, PythonProblem, SetupPlan } from '@aworld-train/core'
import { TrainError } from '@aworld-train/protocol'
import { compareVersions, isBelow, oldestGpuDriver, runsOn, setUpAdvice } from '@aworld-train/python-bridge'

const tested = '1.16.0'
const setUp = setUpAdvice('trl')
/** CUDA of the torch that the pinned packages are for. */
const pinnedCuda = '13.0'
/** What TRL and the bridge import. */
const needed = ['torch', 'transformers', 'datasets', 'accelerate', 'aiohttp']

function judge({ version, packages }: PythonFacts): PythonProblem[] {
  const problems: PythonProblem[] = []
  const refuse = (about: string, message: string) => problems.push({ level: 'error', about, message })
  if (compareVersions(version, [3, 11]) < 0)
    refuse('python', `Python ${version} cannot run TRL ${tested} with this bridge, which needs 3.11 or newer; ${setUp}.`)
  const trl = packages['trl'] ?? null
  if (trl === null) {
    refuse('trl', `TRL is not installed; ${setUp}.`)
    return problems
  }
  if (isBelow(trl, [1, 16]))
    refuse('trl', `TRL ${trl} is older than 1.16, whose rollout_func and advantages differ; install trl==${tested}, or ${setUp}.`)
  else if (trl !== tested)
    problems.push({
      level: 'warning',
      about: 'trl',
      message: `TRL ${trl} was not tested, ${tested} was; if training fails, install trl==${tested}, or ${setUp}.`,
    })
  for (const name of needed)
    if ((packages[name] ?? null) === null)
      refuse(name, `${name} is missing, which TRL or the bridge needs: pip install "${name}", or ${setUp}.`)
  return problems
}

const requirementsFile = (name: string) => fileURLToPath(new URL(`../../requirements/${name}`, import.meta.url))

function planSetup({ torch, driver }: { readonly torch: string; readonly driver: GpuDriver | null }): SetupPlan {
  const onCpu = (reason: string): SetupPlan => ({
    requirements: requirementsFile('trl-1.16.0-cpu.txt'),
    arguments: ['--no-deps'],
    says: `TRL ${tested} and torch 2.13.0, which train on this machine's processor (${reason})`,
  })
  const onGpu = (reason: string): SetupPlan => ({
    requirements: requirementsFile('trl-1.16.0.txt'),
    arguments: ['--no-deps'],
    says: `TRL ${tested} and torch 2.13.0 for CUDA ${pinnedCuda} (${reason}); a server of vLLM has an environment of its own`,
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

export const trlPython: DrivenPython = {
  name: 'trl',
  distribution: 'trl',
  inspected: ['trl', ...needed, 'peft', 'vllm', 'flash-attn'],
  shown: ['trl', 'torch', 'transformers', 'peft', 'vllm'],
  versions: '>=3.11,<3.14',
  judge,
  planSetup,
}
