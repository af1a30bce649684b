import { mkdir, mkdtemp, readFile, rename, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { errorMessage, isRecord, TrainError } from '@aworld-train/core'

/** Location of the weights and the optimiser's state of a checkpoint at the service. */
export interface CheckpointPointer {
  readonly version: 1
  readonly service: string
  /** `tinker://model/weights/name`. */
  readonly path: string
  readonly baseModel: string
  readonly rank: number
  /** Version of these weights when they are published. */
  readonly weightVersion: number
}

const fileName = 'tinker.json'

/** Writes a folder with the pointer. It appears whole or not at all. */
export async function writePointer(directory: string, pointer: CheckpointPointer): Promise<void> {
  await mkdir(dirname(directory), { recursive: true })
  const draft = await mkdtemp(join(dirname(directory), `.${basename(directory)}-`))
  await writeFile(join(draft, fileName), `${JSON.stringify(pointer, null, 2)}\n`)
  await rename(draft, directory)
}

/** Rejects with CHECKPOINT_CORRUPT for a folder without one. */
export async function readPointer(directory: string): Promise<CheckpointPointer> {
  const file = join(directory, fileName)
  try {
    const pointer: unknown = JSON.parse(await readFile(file, 'utf8'))
    if (
      isRecord(pointer) &&
      pointer['version'] === 1 &&
      typeof pointer['service'] === 'string' &&
      typeof pointer['path'] === 'string' &&
      typeof pointer['weightVersion'] === 'number'
    )
      return pointer as unknown as CheckpointPointer
    throw new Error('it does not point to weights of a Tinker service')
  } catch (cause) {
    throw new TrainError('CHECKPOINT_CORRUPT', `${file} cannot be read: ${errorMessage(cause)}.`, { cause })
  }
}
