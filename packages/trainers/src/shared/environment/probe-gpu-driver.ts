import type { Gpu, GpuDriver } from '@aworld-train/core'
import { runProcess } from './run-process.ts'

export interface ProbeGpuDriverOptions {
  readonly env?: NodeJS.ProcessEnv | undefined
  readonly signal?: AbortSignal | undefined
}

const query = 'driver_version,name,memory.total,memory.free,compute_cap'

/** The driver and its GPUs; null if there is no `nvidia-smi`. Throws if that exists and fails. */
export async function probeGpuDriver({ env = process.env, signal }: ProbeGpuDriverOptions = {}): Promise<GpuDriver | null> {
  const ask = (args: readonly string[]) => runProcess('nvidia-smi', args, { env, signal, timeoutMs: 30_000 })
  let answer: Awaited<ReturnType<typeof ask>>
  try {
    answer = await ask([`--query-gpu=${query}`, '--format=csv,noheader,nounits'])
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
  if (answer.code !== 0) throw new Error(`nvidia-smi ended with ${answer.code}: ${(answer.stdout + answer.stderr).trim().slice(0, 300)}`)
  const { stdout } = await ask([])
  return parseGpuDriver(answer.stdout, stdout)
}

/** Reads the rows of `--query-gpu` (memory in MiB) and the banner of a plain call. */
export function parseGpuDriver(rows: string, banner: string): GpuDriver | null {
  const gpus: Gpu[] = []
  let version: string | undefined
  for (const row of rows.split('\n')) {
    const [driver, name, total, free, capability] = row.split(',').map((cell) => cell.trim())
    if (!driver || !name || capability === undefined) continue
    version ??= driver
    gpus.push({ name, memoryBytes: toBytes(total), freeBytes: toBytes(free), capability })
  }
  if (version === undefined) return null
  return { version, cuda: /CUDA(?: UMD)? Version:\s*(\d+\.\d+)/.exec(banner)?.[1] ?? null, gpus }
}

/** Reads MiB as text; some devices report `[N/A]`. */
function toBytes(mebibytes: string | undefined): number {
  const value = Number(mebibytes)
  return Number.isFinite(value) ? value * 2 ** 20 : 0
}

/** Oldest driver for each major version of CUDA, on which its minor versions all run (CUDA compatibility guide, table 1). */
const oldestDrivers: Readonly<Record<number, number>> = { 11: 450, 12: 525, 13: 580 }

/** Whether programs built for `cuda`, such as `13.0`, run on a driver; undefined when neither is known. */
export function runsOn(driver: string, cuda: string): boolean | undefined {
  const needed = oldestDrivers[Number.parseInt(cuda, 10)]
  const found = Number.parseInt(driver, 10)
  return needed === undefined || Number.isNaN(found) ? undefined : found >= needed
}

/** The oldest driver for `cuda`, as a person reads it. */
export function oldestGpuDriver(cuda: string): number | undefined {
  return oldestDrivers[Number.parseInt(cuda, 10)]
}
