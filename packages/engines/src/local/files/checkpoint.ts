import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { copyFile, mkdir, open, stat, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { TrainError } from '@aworld-train/core'
import type { Parameter } from '../parameter-table.ts'
import { companionFiles, readJsonObject } from './model-files.ts'
import { corrupt, readSafetensors, writeSafetensors } from './safetensors.ts'
import { flatten, readWeights, toTensors, weightsFile } from './weights.ts'
import { writeFolderWhole } from './whole-folder.ts'

const optimizerFile = 'optimizer.safetensors'
const metaFile = 'checkpoint.json'
/** Files of a checkpoint that a model folder lacks: the optimiser's state, and the checksums of all files. */
export const checkpointStateFiles: readonly string[] = [optimizerFile, metaFile]

const firstPrefix = 'exp_avg.'
const secondPrefix = 'exp_avg_sq.'

export interface CheckpointState {
  readonly parameters: Float32Array
  /** AdamW's moments, in the layout of the parameters. */
  readonly firstMoment: Float32Array
  readonly secondMoment: Float32Array
  /** Updates since the optimiser was fresh. */
  readonly step: number
}

interface FileRecord {
  readonly bytes: number
  readonly sha256: string
}

export interface WriteOptions {
  readonly parameters: readonly Parameter[]
  /** Folder whose config, tokenizer and template are copied. */
  readonly modelDirectory: string
}

/** Writes a model folder that transformers loads, whole or not at all. */
export async function writeModel(directory: string, weights: Float32Array, options: WriteOptions): Promise<void> {
  await atDisk(directory, async (folder) => {
    await writeModelFiles(folder, weights, options)
  })
}

/** Writes a model folder with the optimiser's state and checksums of every file, whole or not at all. Equal states give equal bytes. */
export async function writeCheckpoint(
  directory: string,
  { parameters: weights, firstMoment, secondMoment, step, weightVersion }: CheckpointState & { readonly weightVersion: number },
  options: WriteOptions,
): Promise<void> {
  await atDisk(directory, async (folder) => {
    const names = await writeModelFiles(folder, weights, options)
    const moments = [
      ...toTensors(firstMoment, options.parameters, firstPrefix),
      ...toTensors(secondMoment, options.parameters, secondPrefix),
    ]
    await writeSafetensors(join(folder, optimizerFile), moments)
    const files: Record<string, FileRecord> = {}
    for (const name of [...names, optimizerFile]) files[name] = await describeFile(join(folder, name))
    const meta = { version: 1, step, weightVersion, files }
    await writeFile(join(folder, metaFile), `${JSON.stringify(meta, null, 2)}\n`, { flush: true })
  })
}

/**
 * Reads a folder of `writeCheckpoint`. A plain model folder gives its weights, with a fresh optimiser and weight version 0. Rejects with
 * CHECKPOINT_CORRUPT, naming the file and the reason.
 */
export async function readCheckpoint(
  directory: string,
  parameters: readonly Parameter[],
): Promise<CheckpointState & { readonly weightVersion: number }> {
  const path = join(directory, metaFile)
  const meta = await readMeta(path)
  if (!meta) {
    const weights = await readWeights(directory, parameters)
    const zeros = (): Float32Array => new Float32Array(weights.length)
    return { parameters: weights, firstMoment: zeros(), secondMoment: zeros(), step: 0, weightVersion: 0 }
  }
  for (const [name, expected] of Object.entries(meta.files)) await verifyFile(join(directory, name), expected)
  const moments = join(directory, optimizerFile)
  const { tensors } = await readSafetensors(moments)
  return {
    parameters: await readWeights(directory, parameters),
    firstMoment: flatten(tensors, parameters, moments, firstPrefix),
    secondMoment: flatten(tensors, parameters, moments, secondPrefix),
    step: meta.step,
    weightVersion: meta.weightVersion,
  }
}

async function writeModelFiles(folder: string, weights: Float32Array, { parameters, modelDirectory }: WriteOptions): Promise<string[]> {
  const names: string[] = []
  for (const name of companionFiles) {
    if (!(await copyIfPresent(join(modelDirectory, name), join(folder, name)))) continue
    names.push(name)
  }
  await writeSafetensors(join(folder, weightsFile), toTensors(weights, parameters), { format: 'pt' })
  return [...names, weightsFile]
}

async function copyIfPresent(from: string, to: string): Promise<boolean> {
  try {
    await copyFile(from, to)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
  const file = await open(to, 'r+')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
  return true
}

/** Converts disk errors to errors of the catalogue. */
async function atDisk(directory: string, write: (folder: string) => Promise<void>): Promise<void> {
  try {
    await mkdir(dirname(resolve(directory)), { recursive: true })
    await writeFolderWhole(directory, write)
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    const what = `The checkpoint ${directory} was not written`
    if (code === 'ENOSPC' || code === 'EDQUOT')
      throw new TrainError('STORE_FULL', `${what}: the disk is full; free space and run again.`, { cause })
    if (code === 'EACCES' || code === 'EROFS' || code === 'EPERM') {
      throw new TrainError('STORE_READ_ONLY', `${what}: the folder cannot be written to; make it writable or choose another.`, { cause })
    }
    throw cause
  }
}

async function readMeta(path: string): Promise<{ step: number; weightVersion: number; files: Record<string, FileRecord> } | null> {
  const json = await readJsonObject(path, {}).catch((cause: unknown) => {
    throw corrupt(path, 'it is not a JSON object', cause)
  })
  if (Object.keys(json).length === 0) return null
  const { version, step, weightVersion, files } = json
  if (version !== 1) throw corrupt(path, `it has version ${JSON.stringify(version)} and this program reads 1`)
  if (!Number.isSafeInteger(step) || !Number.isSafeInteger(weightVersion) || typeof files !== 'object' || files === null) {
    throw corrupt(path, 'a field is missing')
  }
  if (!Object.hasOwn(files, weightsFile) || !Object.hasOwn(files, optimizerFile))
    throw corrupt(path, 'it lists no weights or no optimiser state')
  return { step: step as number, weightVersion: weightVersion as number, files: files as Record<string, FileRecord> }
}

async function describeFile(path: string): Promise<FileRecord> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer)
  return { bytes: (await stat(path)).size, sha256: hash.digest('hex') }
}

async function verifyFile(path: string, { bytes, sha256 }: FileRecord): Promise<void> {
  const found = await describeFile(path).catch((cause: unknown) => {
    throw corrupt(path, 'it cannot be read', cause)
  })
  if (found.bytes !== bytes) throw corrupt(path, `it has ${found.bytes} bytes and was written with ${bytes}`)
  if (found.sha256 !== sha256) throw corrupt(path, 'its checksum is not the one it was written with')
}
