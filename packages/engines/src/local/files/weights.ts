import { access } from 'node:fs/promises'
import { join } from 'node:path'
import type { Parameter } from '../parameter-table.ts'
import { readJsonObject } from './model-files.ts'
import { corrupt, readSafetensors, type Tensor } from './safetensors.ts'

export const weightsFile = 'model.safetensors'
const indexFile = 'model.safetensors.index.json'

/** Reads the weights of a Hugging Face folder, from one file or from the shards of its index. Rejects with CHECKPOINT_CORRUPT. */
export async function readWeights(directory: string, parameters: readonly Parameter[]): Promise<Float32Array> {
  const single = join(directory, weightsFile)
  const present = await access(single).then(
    () => true,
    () => false,
  )
  if (present) return flatten((await readSafetensors(single)).tensors, parameters, single)
  const index = join(directory, indexFile)
  const { weight_map: map } = await readJsonObject(index, {})
  if (typeof map !== 'object' || map === null) throw corrupt(single, `it does not exist, and neither does ${indexFile}`)
  const tensors = new Map<string, Tensor>()
  for (const shard of new Set(Object.values(map as Record<string, string>))) {
    for (const [name, tensor] of (await readSafetensors(join(directory, shard))).tensors) tensors.set(name, tensor)
  }
  return flatten(tensors, parameters, index)
}

/**
 * Lays tensors out as the parameter buffer. Throws CHECKPOINT_CORRUPT for a missing tensor or another shape. `prefix` precedes every name.
 */
export function flatten(tensors: ReadonlyMap<string, Tensor>, parameters: readonly Parameter[], path: string, prefix = ''): Float32Array {
  const last = parameters.at(-1)!
  const values = new Float32Array(last.offset + last.size)
  for (const { name, shape, offset } of parameters) {
    const tensor = tensors.get(prefix + name)
    if (!tensor) throw corrupt(path, `it has no tensor "${prefix}${name}"`)
    if (tensor.shape.join() !== shape.join()) {
      throw corrupt(path, `tensor "${prefix}${name}" has the shape [${tensor.shape}] where config.json asks for [${shape}]`)
    }
    values.set(tensor.data, offset)
  }
  return values
}

/** The parameter buffer as named tensors, which share its memory if it is not shared between threads. */
export function* toTensors(values: Float32Array, parameters: readonly Parameter[], prefix = ''): Generator<[string, Tensor]> {
  for (const { name, shape, offset, size } of parameters) yield [prefix + name, { shape, data: values.slice(offset, offset + size) }]
}
