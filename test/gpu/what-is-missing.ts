import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { errorMessage } from '@aworld-train/core'
import { findPython, probeGpuDriver } from '@aworld-train/trainers/shared'
import { trlTrainer } from '@aworld-train/trainers/trl'
import { verlTrainer } from '@aworld-train/trainers/verl'

export interface GpuMachine {
  readonly model: string
  readonly python: string
  readonly gpus: number
}

/** What verl needs to train a chat model on GPUs with vLLM, or the first thing that this machine lacks and how to give it. */
export async function findGpuMachine(projectDirectory: string, env: NodeJS.ProcessEnv = process.env): Promise<GpuMachine | string> {
  const gpus = await countGpus(env)
  if (typeof gpus === 'string') return gpus
  const model = env['AWORLD_TRAIN_GPU_MODEL']
  if (!model) return 'AWORLD_TRAIN_GPU_MODEL names no folder of a chat model, such as Qwen3-4B'
  if (!existsSync(join(model, 'config.json'))) return `AWORLD_TRAIN_GPU_MODEL is ${model}, which has no config.json`
  try {
    const { path, report } = await findPython(verlTrainer.python, { env, projectDirectory })
    if (!report.packages['vllm']) return `${path} has verl and no vLLM; run "aworld-train setup verl"`
    return { model, python: path, gpus }
  } catch (error) {
    return errorMessage(error)
  }
}

/** A Python whose TRL uses a GPU, or the first thing that this machine lacks and how to give it. */
export async function findTrlPython(
  projectDirectory: string,
  env: NodeJS.ProcessEnv = process.env,
): Promise<{ readonly path: string } | string> {
  const gpus = await countGpus(env)
  if (typeof gpus === 'string') return gpus
  try {
    const { path } = await findPython(trlTrainer.python, { env, projectDirectory })
    const { stdout } = await promisify(execFile)(path, ['-c', 'import torch; print(torch.cuda.is_available())'], { env })
    return stdout.trim() === 'True' ? { path } : `torch of ${path} uses no GPU; run "aworld-train setup trl" here`
  } catch (error) {
    return errorMessage(error)
  }
}

async function countGpus(env: NodeJS.ProcessEnv): Promise<number | string> {
  const driver = await probeGpuDriver({ env })
  if (driver === null) return 'there is no NVIDIA driver (nvidia-smi is not on PATH)'
  return driver.gpus.length === 0 ? 'the NVIDIA driver names no GPU' : driver.gpus.length
}

/** Leaves the test out with what is missing, or fails where AWORLD_TRAIN_GPU_REQUIRED says that a GPU must be here. */
export function requireOrSkip<T extends object>(found: T | string, skip: (note: string) => never): T {
  if (typeof found !== 'string') return found
  if (process.env['AWORLD_TRAIN_GPU_REQUIRED'] === '1') throw new Error(`A GPU is required, and ${found}.`)
  return skip(found)
}
