import { type FileHandle, open } from 'node:fs/promises'
import { isRecord, TrainError } from '@aworld-train/core'
import { bfloat16ToFloat32, float16ToFloat32 } from './half-floats.ts'

/** A tensor in row-major order, as 32-bit floats whatever the file holds. */
export interface Tensor {
  readonly shape: readonly number[]
  readonly data: Float32Array
}

export interface Safetensors {
  /** In the order of the file's data. */
  readonly tensors: ReadonlyMap<string, Tensor>
  readonly metadata: Readonly<Record<string, string>>
}

type Dtype = 'F32' | 'F16' | 'BF16'
const bytesPerElement: Readonly<Record<Dtype, number>> = { F32: 4, F16: 2, BF16: 2 }
const maxHeaderBytes = 100_000_000

interface Entry {
  readonly name: string
  readonly dtype: Dtype
  readonly shape: readonly number[]
  readonly begin: number
  readonly end: number
}

/**
 * Reads a safetensors file (https://github.com/huggingface/safetensors, F32, F16 and BF16). Rejects with CHECKPOINT_CORRUPT, naming the
 * file and the error.
 */
export async function readSafetensors(path: string): Promise<Safetensors> {
  const file = await openForReading(path)
  try {
    const { size } = await file.stat()
    const { entries, metadata, dataStart } = await readHeader(file, path, size)
    const tensors = new Map<string, Tensor>()
    for (const { name, dtype, shape, begin, end } of entries) {
      const bytes = await readRange(file, path, dataStart + begin, end - begin)
      tensors.set(name, { shape, data: toFloat32(bytes, dtype) })
    }
    return { tensors, metadata }
  } finally {
    await file.close()
  }
}

/** Writes tensors as F32, in the given order, and flushes them to the disk. Equal input gives equal bytes. */
export async function writeSafetensors(
  path: string,
  tensors: Iterable<readonly [string, Tensor]>,
  metadata: Readonly<Record<string, string>> = {},
): Promise<void> {
  const rows = [...tensors]
  const header: Record<string, unknown> = {}
  if (Object.keys(metadata).length > 0) header['__metadata__'] = metadata
  let offset = 0
  for (const [name, { shape, data }] of rows) {
    if (Object.hasOwn(header, name)) throw new RangeError(`Two tensors are named "${name}".`)
    if (elementCount(shape) !== data.length)
      throw new RangeError(`Tensor "${name}" has ${data.length} elements, its shape [${shape}] others.`)
    header[name] = { dtype: 'F32', shape, data_offsets: [offset, offset + data.byteLength] }
    offset += data.byteLength
  }
  const json = Buffer.from(JSON.stringify(header))
  const start = Buffer.alloc(8 + Math.ceil(json.length / 8) * 8, ' ')
  start.writeBigUInt64LE(BigInt(start.length - 8))
  json.copy(start, 8)
  const file = await open(path, 'w')
  try {
    await file.writeFile(start)
    for (const [, { data }] of rows) await file.writeFile(new Uint8Array(data.buffer, data.byteOffset, data.byteLength))
    await file.sync()
  } finally {
    await file.close()
  }
}

async function openForReading(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'r')
  } catch (cause) {
    throw corrupt(path, 'it cannot be opened', cause)
  }
}

async function readHeader(
  file: FileHandle,
  path: string,
  size: number,
): Promise<{ entries: Entry[]; metadata: Record<string, string>; dataStart: number }> {
  if (size < 8) throw corrupt(path, `it has ${size} bytes, fewer than the length of its header takes`)
  const length = Number((await readRange(file, path, 0, 8)).readBigUInt64LE())
  if (length > maxHeaderBytes) throw corrupt(path, `its header claims ${length} bytes`)
  if (8 + length > size) throw corrupt(path, `it is cut off: ${size} bytes, of which the header alone would take ${8 + length}`)
  const header = parseHeader((await readRange(file, path, 8, length)).toString('utf8'), path)
  const dataStart = 8 + length
  const { __metadata__: metadata = {}, ...described } = header
  const entries = Object.entries(described).map(([name, value]) => toEntry(name, value, path))
  entries.sort((a, b) => a.begin - b.begin || a.end - b.end)
  const dataBytes = size - dataStart
  let expected = 0
  for (const { name, begin, end } of entries) {
    if (end > dataBytes) throw corrupt(path, `it is cut off: tensor "${name}" ends at byte ${dataStart + end} of ${size}`)
    if (begin !== expected) throw corrupt(path, `tensor "${name}" starts at ${begin} where ${expected} was expected`)
    expected = end
  }
  if (expected !== dataBytes) throw corrupt(path, `${dataBytes - expected} bytes follow the last tensor`)
  return { entries, metadata: metadata as Record<string, string>, dataStart }
}

function parseHeader(text: string, path: string): Record<string, unknown> {
  let header: unknown
  try {
    header = JSON.parse(text)
  } catch (cause) {
    throw corrupt(path, 'its header is not JSON', cause)
  }
  if (!isRecord(header)) throw corrupt(path, 'its header is not an object')
  return header as Record<string, unknown>
}

function toEntry(name: string, value: unknown, path: string): Entry {
  const { dtype, shape, data_offsets: offsets } = (value ?? {}) as { dtype?: unknown; shape?: unknown; data_offsets?: unknown }
  if (typeof dtype !== 'string' || !Object.hasOwn(bytesPerElement, dtype)) {
    throw corrupt(path, `tensor "${name}" has type ${String(dtype)}; F32, F16 and BF16 can be read`)
  }
  if (!isCounts(shape) || !isCounts(offsets) || offsets.length !== 2) throw corrupt(path, `tensor "${name}" has no valid shape and offsets`)
  const [begin, end] = offsets as [number, number]
  const bytes = elementCount(shape) * bytesPerElement[dtype as Dtype]
  if (end - begin !== bytes) throw corrupt(path, `tensor "${name}" takes ${end - begin} bytes where its shape [${shape}] takes ${bytes}`)
  return { name, dtype: dtype as Dtype, shape, begin, end }
}

const isCounts = (value: unknown): value is number[] => Array.isArray(value) && value.every((n) => Number.isSafeInteger(n) && n >= 0)

const elementCount = (shape: readonly number[]): number => shape.reduce((product, n) => product * n, 1)

async function readRange(file: FileHandle, path: string, position: number, length: number): Promise<Buffer> {
  const bytes = Buffer.from(new ArrayBuffer(length))
  for (let done = 0; done < length; ) {
    const { bytesRead } = await file.read(bytes, done, length - done, position + done)
    if (bytesRead === 0) throw corrupt(path, `it is cut off at byte ${position + done}`)
    done += bytesRead
  }
  return bytes
}

function toFloat32(bytes: Buffer, dtype: Dtype): Float32Array {
  if (dtype === 'F32') return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4)
  const halves = new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.length / 2)
  return dtype === 'BF16' ? bfloat16ToFloat32(halves) : float16ToFloat32(halves)
}

/** CHECKPOINT_CORRUPT for one file: `reason` completes "… cannot be used: ". */
export function corrupt(path: string, reason: string, cause?: unknown): TrainError {
  return new TrainError('CHECKPOINT_CORRUPT', `${path} cannot be used: ${reason}. Restore the file, or use another checkpoint.`, {
    cause,
    details: { path, reason },
  })
}
