import type { GpuDriver, MachineCheck } from '@aworld-train/core'
import type { PythonReport } from '../../shared/environment/inspect-python.ts'
import { oldestGpuDriver, runsOn } from '../../shared/environment/probe-gpu-driver.ts'
import { toCheck } from '../../shared/training/to-check.ts'
import type { MachineFacts } from './read-machine.ts'

/** Needs of a resolved configuration on one machine; null without a configuration. */
export interface MachineNeeds {
  /** `trainer.device`. */
  readonly device: string
  /** GPUs of this machine: `trainer.n_gpus_per_node`. */
  readonly gpus: number
}

type Finding = { readonly level: 'error' | 'warning'; readonly message: string }

/** Judges the driver, the GPUs and the torch for them. */
export function judgeGpus(driver: GpuDriver | null, torch: PythonReport['torch'], needs: MachineNeeds | null): MachineCheck[] {
  const findings: Finding[] = []
  const wantsGpus = needs !== null && needs.device !== 'cpu'
  if (!driver) {
    // GPUs of other makers have other drivers, and torch finds them.
    if (wantsGpus && !torch?.available)
      findings.push({
        level: 'error',
        message: `trainer.device is ${needs.device} and this machine has no GPU; train on one that has, or set smoke to true, which trains a small model on the processor.`,
      })
    return [
      toCheck(
        'driver',
        findings.length > 0
          ? ''
          : wantsGpus
            ? 'no NVIDIA driver, and torch finds GPUs'
            : 'no NVIDIA driver: verl trains on the processor, with small models',
        findings,
      ),
      ...judgeTorch(null, torch),
    ]
  }
  const count = driver.gpus.length
  const lines = driver.gpus.map(({ name, memoryBytes, freeBytes, capability }, index) => {
    const busy = freeBytes < 0.9 * memoryBytes
    if (busy)
      findings.push({
        level: 'warning',
        message: `GPU ${index} has ${gigabytes(freeBytes)} of ${gigabytes(memoryBytes)} free: something else uses it; end that, or lower actor_rollout_ref.rollout.gpu_memory_utilization.`,
      })
    return `${index}: ${name}, ${gigabytes(memoryBytes)}, capability ${capability}`
  })
  if (wantsGpus && needs.gpus > count)
    findings.push({
      level: 'error',
      message: `trainer.n_gpus_per_node is ${needs.gpus} and this machine has ${count}; verl would wait for the rest for ever. Lower it, or train elsewhere.`,
    })
  if (needs !== null && needs.device === 'cpu') findings.push({ level: 'warning', message: 'trainer.device is cpu: the GPUs stay idle.' })
  const cuda = driver.cuda === null ? '' : `, CUDA up to ${driver.cuda}`
  return [
    { name: 'driver', level: 'ok', message: `${driver.version}${cuda}` },
    toCheck('gpus', lines.join('\n'), findings),
    ...judgeTorch(driver, torch),
  ]
}

function judgeTorch(driver: GpuDriver | null, torch: PythonReport['torch']): MachineCheck[] {
  if (torch === null) return []
  const { version, cuda, available, devices, error } = torch
  if (error !== null)
    return [{ name: 'torch', level: 'problem', message: `torch ${version} cannot be imported: ${error}\nRun "aworld-train setup verl".` }]
  const findings: Finding[] = []
  if (driver && cuda === null)
    findings.push({
      level: 'error',
      message: `torch ${version} is built without CUDA and leaves the GPUs unused; run "aworld-train setup verl".`,
    })
  else if (driver && cuda !== null && runsOn(driver.version, cuda) === false)
    findings.push({
      level: 'error',
      message: `torch ${version} is built for CUDA ${cuda}, which needs driver ${oldestGpuDriver(cuda)} or newer; this one is ${driver.version}. Update the driver, or set up an older CUDA: "aworld-train setup verl --torch 12.9".`,
    })
  else if (driver && !available)
    findings.push({
      level: 'error',
      message: `torch ${version} finds no GPU; look at CUDA_VISIBLE_DEVICES and the permissions of /dev/nvidia*.`,
    })
  const uses = available ? `uses ${devices.length} GPU${devices.length === 1 ? '' : 's'}` : 'computes on the processor'
  return [toCheck('torch', `${version}${cuda === null ? '' : ` for CUDA ${cuda}`}, ${uses}`, findings)]
}

/** Ray's object store is 30 % of memory. Beyond 10 GB it takes no more than `/dev/shm` holds (ray/_private/utils.py, services.py 2.60). */
const storeShare = 0.3
const storeThreshold = 10e9
/** Ray refuses to spill to a disk that is fuller (local_fs_capacity_threshold). */
const fullDisk = 0.95

/** Judges memory, shared memory, disks and Ray. */
export function judgeMachine(machine: MachineFacts, needs: MachineNeeds | null): MachineCheck[] {
  const { memoryBytes, sharedMemory, disk, temporary, rayAddress, runningRay } = machine
  const onCpu = needs === null || needs.device === 'cpu'
  const memory: Finding[] = []
  if (memoryBytes < 8 * 2 ** 30)
    memory.push({
      level: 'warning',
      message: "verl's processes take 5 GiB with the smallest model; close other programs, or use a larger machine.",
    })
  const shared: Finding[] = []
  const store = Math.min(storeShare * memoryBytes, storeThreshold)
  if (sharedMemory === null || sharedMemory.freeBytes < store)
    shared.push({
      level: 'warning',
      message: `Ray wants ${gigabytes(store)} for its object store and would keep it on disk, slowly; in Docker start with --shm-size=${Math.ceil((store * 1.1) / 2 ** 30)}g.`,
    })
  const space: Finding[] = []
  const neededBytes = onCpu ? 5 * 2 ** 30 : 100 * 2 ** 30
  if (disk.freeBytes < neededBytes)
    space.push({
      level: 'warning',
      message: onCpu
        ? `checkpoints and logs may need ${gigabytes(neededBytes)}; free space.`
        : 'a checkpoint of a 4B model with its optimiser is 50 GiB and more; free space, or set trainer.default_local_dir elsewhere.',
    })
  if (1 - temporary.freeBytes / temporary.totalBytes > fullDisk)
    space.push({
      level: 'warning',
      message: `${temporary.path} is over 95 % full, where Ray stops to spill objects; free space, or set RAY_TMPDIR to a short path elsewhere.`,
    })
  const ray: Finding[] = []
  if (rayAddress !== null)
    ray.push({
      level: 'warning',
      message: `RAY_ADDRESS is ${rayAddress}: verl joins that cluster; unset it to train on this machine alone.`,
    })
  else if (runningRay !== null)
    ray.push({
      level: 'warning',
      message: `a cluster runs at ${runningRay}, which verl joins when run.sh is started by hand; AgentTrainer starts its own.`,
    })
  return [
    toCheck('memory', gigabytes(memoryBytes), memory),
    toCheck('shared memory', sharedMemory ? `${gigabytes(sharedMemory.freeBytes)} free in ${sharedMemory.path}` : 'no /dev/shm', shared),
    toCheck('disk', `${gigabytes(disk.freeBytes)} free for ${disk.path}`, space),
    toCheck('ray', ray.length === 0 ? 'no cluster is in the way; verl starts its own' : '', ray),
  ]
}

/** Formats bytes such as `23.5 GiB`. */
function gigabytes(bytes: number): string {
  const value = bytes / 2 ** 30
  return `${value >= 100 ? value.toFixed(0) : value.toFixed(1)} GiB`
}
