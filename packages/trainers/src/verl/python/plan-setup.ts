import { fileURLToPath } from 'node:url'
import { type GpuDriver, type SetupPlan, TrainError } from '@aworld-train/core'
import { oldestGpuDriver, runsOn } from '../../shared/environment/probe-gpu-driver.ts'

const requirementsFile = (name: string) => fileURLToPath(new URL(`../../../requirements/verl/${name}`, import.meta.url))

/** CUDA version of the pinned packages for GPUs. */
const pinnedCuda = '13.0'

/** Chooses the packages for a machine. `torch` is `auto`, `cpu` or a version of CUDA such as `13.0`, `cu129`. */
export function planSetup({ torch, driver }: { readonly torch: string; readonly driver: GpuDriver | null }): SetupPlan {
  const onCpu = (reason: string): SetupPlan => ({
    requirements: requirementsFile('verl-0.9.1.txt'),
    arguments: ['--no-deps'],
    says: `verl 0.9.1 and torch 2.13.0, which train on this machine's processor (${reason})`,
  })
  const onGpu = (reason: string): SetupPlan => ({
    requirements: requirementsFile('verl-0.9.1-vllm.txt'),
    arguments: ['--no-deps'],
    says: `verl 0.9.1, vLLM 0.24.0 and torch 2.11.0 for CUDA ${pinnedCuda} (${reason})`,
  })
  if (torch === 'cpu') return onCpu('as asked')
  if (torch === 'auto') {
    if (!driver) return onCpu('there is no NVIDIA driver')
    const gpus = `driver ${driver.version}, ${driver.gpus.length} GPU${driver.gpus.length === 1 ? '' : 's'}`
    if (runsOn(driver.version, pinnedCuda) !== false) return onGpu(gpus)
    throw new TrainError(
      'TRAINER_ENVIRONMENT',
      `The NVIDIA driver ${driver.version} is too old for CUDA ${pinnedCuda}, which verl 0.9.1's vLLM and torch are built for: update it to ${oldestGpuDriver(pinnedCuda)} or newer, ask for builds of an older CUDA with --torch 12.9, or train on the processor with --torch cpu.`,
    )
  }
  const version = /^(?:cu)?(?<major>1\d)\.?(?<minor>\d)$/.exec(torch)?.groups
  if (!version) throw new TrainError('CONFIG_INVALID', `--torch ${torch} is not known; give auto, cpu, or a version of CUDA such as 13.0.`)
  const cuda = `${version['major']}.${version['minor']}`
  if (driver && runsOn(driver.version, cuda) === false)
    throw new TrainError(
      'TRAINER_ENVIRONMENT',
      `CUDA ${cuda} needs an NVIDIA driver ${oldestGpuDriver(cuda)} or newer; this machine has ${driver.version}. Update it, or give a lower --torch.`,
    )
  if (cuda === pinnedCuda) return onGpu('as asked')
  return {
    requirements: requirementsFile('verl-0.9.1-vllm.in'),
    arguments: ['--torch-backend', `cu${cuda.replace('.', '')}`],
    says: `verl 0.9.1, vLLM 0.24.0 and torch 2.11.0 for CUDA ${cuda}, from PyTorch's own index; the other versions are not pinned, and this choice is untested`,
  }
}
