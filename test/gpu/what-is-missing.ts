import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { errorMessage } from '@aworld-train/protocol'
import { findPython, probeGpuDriver } from '@aworld-train/python-bridge'
import { verlTrainer } from '@aworld-train/trainer-verl'

export interface GpuMachine {
  readonly model: string
  readonly python: string
  readonly gpus: number
}

/** What training on GPUs needs, or the first thing that this machine lacks and how to give it. */
export async function findGpuMachine(projectDirectory: string, env: NodeJS.ProcessEnv = process.env): Promise<GpuMachine | string> {
  const driver = await probeGpuDriver({ env })
  if (driver === null) return 'there is no NVIDIA driver (nvidia-smi is not on PATH)'
  if (driver.gpus.length === 0) return 'the NVIDIA driver names no GPU'
  const model = env['AWORLD_TRAIN_GPU_MODEL']
  if (!model) return 'AWORLD_TRAIN_GPU_MODEL names no folder of a chat model, such as Qwen3-4B'
  if (!existsSync(join(model, 'config.json'))) return `AWORLD_TRAIN_GPU_MODEL is ${model}, which has no config.json`
  try {
    const { path, report } = await findPython(verlTrainer.python, { env, projectDirectory })
    if (!report.packages['vllm']) return `${path} has verl and no vLLM; run "aworld-train setup verl"`
    return { model, python: path, gpus: driver.gpus.length }
  } catch (error) {
    return errorMessage(error)
  }
}
