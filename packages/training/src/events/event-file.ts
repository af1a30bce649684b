import { closeSync, ftruncateSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { crc32c } from './crc32c.ts'
import { decodeTags, encodeFileVersion, encodeScalars, type ScalarsOfStep } from './event-proto.ts'

/** A growing event file of TensorBoard. Written events are visible to every reader at once, and survive a kill of this process. */
export interface EventFile {
  /** Appends the values whose tag has none at this step; `atMs` is Unix milliseconds. Throws the errors of the disk. */
  append(scalars: ScalarsOfStep, atMs: number): void
  close(): void
}

/**
 * Opens a file to append after its last whole record, or creates it. Steps after `resumedFromStep` may have values once more, as they are
 * trained again. Throws the errors of the disk.
 */
export function openEventFile(path: string, resumedFromStep: number = Number.POSITIVE_INFINITY): EventFile {
  mkdirSync(dirname(path), { recursive: true })
  const file = openSync(path, 'a+')
  const written = new Set<string>()
  const key = (tag: string, step: number) => `${step} ${tag}`
  try {
    const { records, end } = readRecords(readFileSync(file))
    for (const record of records) {
      const { step, tags } = decodeTags(record)
      if (step <= resumedFromStep) for (const tag of tags) written.add(key(tag, step))
    }
    ftruncateSync(file, end)
    if (records.length === 0) writeSync(file, toRecord(encodeFileVersion(Date.now())))
  } catch (error) {
    closeSync(file)
    throw error
  }
  return {
    append({ step, values }, atMs) {
      const missing = Object.entries(values).filter(([tag]) => !written.has(key(tag, step)))
      if (missing.length === 0) return
      writeSync(file, toRecord(encodeScalars({ step, values: Object.fromEntries(missing) }, atMs)))
      for (const [tag] of missing) written.add(key(tag, step))
    },
    close: () => closeSync(file),
  }
}

const headerBytes = 12
const footerBytes = 4

/** Encodes a TFRecord: length, its check sum, the data, and their check sum (tensorflow/core/lib/io/record_writer.h). */
function toRecord(data: Buffer): Buffer {
  const record = Buffer.alloc(headerBytes + data.length + footerBytes)
  record.writeBigUInt64LE(BigInt(data.length))
  record.writeUInt32LE(masked(record.subarray(0, 8)), 8)
  data.copy(record, headerBytes)
  record.writeUInt32LE(masked(data), headerBytes + data.length)
  return record
}

/** The records up to the first that is cut off or damaged, and the position of that one. */
function readRecords(bytes: Buffer): { readonly records: Buffer[]; readonly end: number } {
  const records: Buffer[] = []
  let end = 0
  while (end + headerBytes <= bytes.length) {
    if (bytes.readUInt32LE(end + 8) !== masked(bytes.subarray(end, end + 8))) break
    const next = end + headerBytes + Number(bytes.readBigUInt64LE(end)) + footerBytes
    if (next > bytes.length) break
    const data = bytes.subarray(end + headerBytes, next - footerBytes)
    if (bytes.readUInt32LE(next - footerBytes) !== masked(data)) break
    records.push(data)
    end = next
  }
  return { records, end }
}

/** Masks a check sum: rotates it by 15 bits and adds a constant, because the data may hold check sums itself. */
function masked(data: Uint8Array): number {
  const crc = crc32c(data)
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0
}
