import { fileURLToPath } from 'node:url'
import type { DrivenPython, GpuDriver, PythonFacts, PythonProblem, SetupPlan } from '@aworld-train/core'
import { TrainError } from '@aworld-train/protocol'
import { compareVersions, isBelow, oldestGpuDriver, runsOn, setUpAdvice } from '@aworld-train/python-bridge'

const tested = '1.0.4'
const setUp = setUpAdvice('areal')
/** CUDA of the torch that the pinned packages are for. */
const pinnedCuda = '12.8'
/** What AReaL and the bridge import. */
const needed = ['torch', 'transformers', 'datasets', 'omegaconf', 'aiohttp']

function judge({ version, packages }: PythonFacts): PythonProblem[] {
  const problems: PythonProblem[] = []
  const refuse = (about: string, message: string) => problems.push({ level: 'error', about, message })
  if (compareVersions(version, [3, 11]) < 0 || compareVersions(version, [3, 13]) >= 0)
    refuse('python', `Python ${version} cannot run AReaL ${tested}, which needs 3.11 or 3.12; ${setUp}.`)
  const areal = packages['areal'] ?? null
  if (areal === null) {
    refuse('areal', `AReaL is not installed; ${setUp}.`)
    return problems
  }
  if (isBelow(areal, [1, 0, 4]))
    refuse(
      'areal',
      `AReaL ${areal} is older than ${tested}, whose batches and configuration differ; install areal==${tested}, or ${setUp}.`,
    )
  else if (areal !== tested)
    problems.push({
      level: 'warning',
      about: 'areal',
      message: `AReaL ${areal} was not tested, ${tested} was; if training fails, install areal==${tested}, or ${setUp}.`,
    })
  for (const name of needed)
    if ((packages[name] ?? null) === null)
      refuse(name, `${name} is missing, which AReaL or the bridge needs: pip install "${name}", or ${setUp}.`)
  return problems
}

const requirementsFile = (name: string) => fileURLToPath(new URL(`../../requirements/${name}`, import.meta.url))

function planSetup({ torch, driver }: { readonly torch: string; readonly driver: GpuDriver | null }): SetupPlan {
  const onCpu = (reason: string): SetupPlan => ({
    requirements: requirementsFile('areal-1.0.4-cpu.txt'),
    arguments: ['--no-deps'],
    says: `AReaL ${tested} and torch 2.10.0, which train on this machine's processor (${reason}); about 7 GB`,
  })
  const onGpu = (reason: string): SetupPlan => ({
    requirements: requirementsFile('areal-1.0.4.txt'),
    arguments: ['--no-deps'],
    says: `AReaL ${tested} and torch 2.10.0 for CUDA ${pinnedCuda} (${reason}), about 9 GB; a server of vLLM or SGLang has an environment of its own`,
  })
  if (torch === 'cpu') return onCpu('as asked')
  if (torch !== 'auto' && !/^(?:cu)?12\.?8$/.test(torch))
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

export const arealPython: DrivenPython = {
  name: 'areal',
  distribution: 'areal',
  inspected: ['areal', ...needed, 'litellm', 'vllm', 'sglang', 'flash-attn'],
  shown: ['areal', 'torch', 'transformers', 'vllm', 'sglang'],
  versions: '>=3.11,<3.13',
  judge,
  planSetup,
}
