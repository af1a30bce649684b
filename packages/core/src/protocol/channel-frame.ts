import { TrainError } from './errors.ts'

/** Arrays that are sent beside a message, by name. */
export type ChannelArrays = Readonly<Record<string, ChannelArray>>
export type ChannelArray = Int32Array | Float32Array | Uint8Array

/** A message of the channel, before its members are checked. */
export interface ChannelFrame {
  readonly message: Readonly<Record<string, unknown>>
  readonly arrays: ChannelArrays
}

interface ArrayHead {
  readonly name: string
  readonly type: keyof typeof kinds
  readonly length: number
}

const kinds = {
  int32: { bytes: 4, from: (buffer: ArrayBufferLike, offset: number, length: number) => new Int32Array(buffer, offset, length) },
  float32: { bytes: 4, from: (buffer: ArrayBufferLike, offset: number, length: number) => new Float32Array(buffer, offset, length) },
  uint8: { bytes: 1, from: (buffer: ArrayBufferLike, offset: number, length: number) => new Uint8Array(buffer, offset, length) },
} as const

const typeOf = (array: ChannelArray): ArrayHead['type'] =>
  array instanceof Int32Array ? 'int32' : array instanceof Float32Array ? 'float32' : 'uint8'

const padded = (bytes: number) => (bytes + 3) & ~3

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true })

/**
 * Encodes a message as a WebSocket frame: text if it has no arrays, else binary. A binary frame is: uint32 length of the header, the header
 * as JSON with `arrays: [{name, type, length}]`, zeros up to a multiple of 4 bytes, then the arrays, each padded to 4 bytes; little endian.
 */
export function encodeChannelFrame(message: object, arrays: ChannelArrays = {}): string | Uint8Array<ArrayBuffer> {
  const entries = Object.entries(arrays)
  if (entries.length === 0) return JSON.stringify(message)
  const heads: ArrayHead[] = entries.map(([name, array]) => ({ name, type: typeOf(array), length: array.length }))
  const header = encoder.encode(JSON.stringify({ ...message, arrays: heads }))
  const start = padded(4 + header.length)
  const frame = new Uint8Array(start + entries.reduce((sum, [, array]) => sum + padded(array.byteLength), 0))
  new DataView(frame.buffer).setUint32(0, header.length, true)
  frame.set(header, 4)
  let offset = start
  for (const [, array] of entries) {
    frame.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), offset)
    offset += padded(array.byteLength)
  }
  return frame
}

function unreadable(reason: string): TrainError {
  return new TrainError('CHANNEL_INVALID', `A frame of the channel cannot be read: ${reason}. Use the same version on both sides.`)
}

function readHeader(text: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw unreadable('its header is not JSON')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw unreadable('its header is not a JSON object')
  return value as Record<string, unknown>
}

function isHead(value: unknown): value is ArrayHead {
  const { name, type, length } = (value ?? {}) as Partial<ArrayHead>
  return typeof name === 'string' && typeof type === 'string' && Object.hasOwn(kinds, type) && Number.isSafeInteger(length) && length! >= 0
}

/**
 * Decodes a frame. Arrays are views of `data` if it is aligned to 4 bytes, else of one copy of it. Throws CHANNEL_INVALID for an invalid
 * frame: a header that is not JSON, arrays that do not fill the frame, or two of one name.
 */
export function decodeChannelFrame(data: string | Uint8Array): ChannelFrame {
  if (typeof data === 'string') return { message: readHeader(data), arrays: {} }
  const { byteLength } = data
  if (byteLength < 4) throw unreadable(`it has ${byteLength} bytes`)
  // A Buffer's own slice would be a view.
  const aligned = data.byteOffset % 4 === 0 ? data : new Uint8Array(data)
  const { buffer, byteOffset } = aligned
  const headerLength = new DataView(buffer, byteOffset, 4).getUint32(0, true)
  if (headerLength > byteLength - 4) throw unreadable(`its header of ${headerLength} bytes is longer than the frame of ${byteLength}`)
  let text: string
  try {
    text = decoder.decode(aligned.subarray(4, 4 + headerLength))
  } catch {
    throw unreadable('its header is not UTF-8')
  }
  const { arrays: heads, ...message } = readHeader(text)
  if (!Array.isArray(heads)) throw unreadable('its header names no arrays')
  const arrays: Record<string, ChannelArray> = {}
  let offset = padded(4 + headerLength)
  for (const head of heads as unknown[]) {
    if (!isHead(head)) throw unreadable(`${JSON.stringify(head)?.slice(0, 100)} is no description of an array`)
    const { name, type, length } = head
    if (Object.hasOwn(arrays, name)) throw unreadable(`it has two arrays "${name.slice(0, 100)}"`)
    const { bytes, from } = kinds[type]
    if (offset + length * bytes > byteLength) throw unreadable(`array "${name.slice(0, 100)}" goes beyond its end`)
    Object.defineProperty(arrays, name, { value: from(buffer, byteOffset + offset, length), enumerable: true })
    offset += padded(length * bytes)
  }
  if (offset !== byteLength) throw unreadable(`it has ${byteLength} bytes, its arrays end at ${offset}`)
  return { message, arrays }
}
