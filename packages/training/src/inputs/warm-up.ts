import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { TrainError } from '@aworld-train/core'
import { loadExport } from './load-export.ts'

export interface WarmUpRequest {
  /** Folder that the model is written to: config.json, model.safetensors, tokenizer files. */
  readonly directory: string
  readonly seed: number
  readonly simd: 'auto' | 'plain' | 'relaxed'
  readonly threads: number | null
  readonly signal: AbortSignal
  /** Reports progress, with metrics. */
  readonly onProgress: (done: number, total: number, metrics: Readonly<Record<string, number>>) => void
}

/** Makes a starting model from nothing. */
export type WarmUp = (request: WarmUpRequest) => Promise<void>

/** Runs `./file.ts#name` as a warm-up. */
export async function runWarmUp(path: string, baseDirectory: string, request: WarmUpRequest): Promise<void> {
  const warmUp = await loadExport(path, baseDirectory)
  if (typeof warmUp !== 'function')
    throw new TrainError('MODULE_INVALID', `The warm-up ${path} is not a function; export an async function that writes a model folder.`)
  await mkdir(dirname(request.directory), { recursive: true })
  await (warmUp as WarmUp)(request)
}
