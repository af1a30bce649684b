import { protobuf, protobufFields } from '@aworld-train/core'

// The messages of `tinker_public.proto` in the Python SDK 0.38.0 that this side writes and reads; the rest of the protocol is JSON.

export interface WireRow {
  /** Ids that the model sees. Every tensor has one number for each. */
  readonly tokens: Int32Array
  /** `target_tokens` are written as int64, all others as float32. */
  readonly inputs: Readonly<Record<string, Int32Array | Float32Array>>
}

export interface ForwardBackward {
  readonly modelId: string
  /** Counts the requests of a model from 1. */
  readonly seqId: number
  readonly rows: readonly WireRow[]
  readonly lossFunction: string
  readonly lossConfig: Readonly<Record<string, number>>
  readonly forwardOnly: boolean
}

export interface WireSequence {
  readonly tokenIds: Int32Array
  readonly logprobs: Float32Array
  /** Whether a stop token ended it, rather than its length. */
  readonly stopped: boolean
}

export interface ForwardBackwardResult {
  /** One row for each row of the request, as long as its tokens. */
  readonly logprobs: readonly Float32Array[]
  readonly metrics: Readonly<Record<string, number>>
}

const dtype = { float32: 1, int64: 2, bfloat16: 4 } as const

/** Encodes a ForwardBackwardRequest, byte for byte as the SDK writes it. */
export function encodeForwardBackward(request: ForwardBackward): Buffer {
  const config = inOrder(request.lossConfig)
  return Buffer.concat([
    protobuf.text(1, request.modelId),
    protobuf.varint(2, request.seqId),
    ...request.rows.map((row) => protobuf.bytes(3, ...encodeDatum(row))),
    protobuf.text(4, request.lossFunction),
    ...config.map(([name, value]) => protobuf.bytes(5, protobuf.text(1, name), protobuf.double(2, value))),
    ...(request.forwardOnly ? [protobuf.varint(6, 1)] : []),
    ...config.map(([name, value]) => protobuf.bytes(7, protobuf.text(1, name), protobuf.bytes(2, protobuf.double(1, value)))),
  ])
}

function encodeDatum({ tokens, inputs }: WireRow): Buffer[] {
  return [
    protobuf.bytes(1, protobuf.bytes(1, protobuf.bytes(1, bytesOf(tokens)))),
    ...inOrder(inputs).map(([name, values]) => protobuf.bytes(2, protobuf.text(1, name), protobuf.bytes(2, ...encodeTensor(values)))),
  ]
}

function encodeTensor(values: Int32Array | Float32Array): Buffer[] {
  const isFloat = values instanceof Float32Array
  return [
    protobuf.bytes(1, isFloat ? bytesOf(values) : bytesOf(BigInt64Array.from(values, BigInt))),
    protobuf.varint(3, isFloat ? dtype.float32 : dtype.int64),
    protobuf.packed(4, [values.length]),
  ]
}

/** Decodes the sequences of a SampleResponse. Throws RangeError for one that is cut off. */
export function decodeSample(message: Buffer): WireSequence[] {
  return messagesIn(message, 1).map((sequence) => {
    const tokenIds = numbersIn(Int32Array, bytesIn(sequence, 2))
    const logprobs = numbersIn(Float32Array, bytesIn(sequence, 3))
    if (tokenIds.length !== logprobs.length)
      throw new RangeError(`A sequence has ${tokenIds.length} tokens and ${logprobs.length} logprobs.`)
    // A field of its default value, 0, is not written.
    const stopped = [...protobufFields(sequence)].every(({ number, value }) => number !== 1 || value === 0)
    return { tokenIds, logprobs, stopped }
  })
}

/** Decodes logprobs and metrics of a ForwardBackwardOutput. Throws RangeError for one that is cut off or has no logprobs. */
export function decodeForwardBackward(message: Buffer): ForwardBackwardResult {
  const logprobs = messagesIn(message, 2).flatMap((record) => {
    const tensor = messagesIn(record, 2).find((entry) => bytesIn(entry, 1).toString() === 'logprobs')
    if (!tensor) throw new RangeError('The result has no logprobs.')
    return decodeRows(bytesIn(tensor, 2))
  })
  const metrics = messagesIn(message, 3).map((entry) => [bytesIn(entry, 1).toString(), doubleIn(entry, 2)] as const)
  return { logprobs, metrics: Object.fromEntries(metrics) }
}

/** Decodes a BatchedTensor: rows one after another, and the offset of each in bytes. */
function decodeRows(tensor: Buffer): Float32Array[] {
  const data = bytesIn(tensor, 1)
  const offsets = Array.from(numbersIn(BigInt64Array, bytesIn(tensor, 2)), Number)
  const type = [...protobufFields(tensor)].find(({ number }) => number === 3)?.value
  if (type !== dtype.float32 && type !== dtype.bfloat16) throw new RangeError(`The logprobs have the unknown type ${type}.`)
  if ((offsets.at(-1) ?? 0) > data.length) throw new RangeError(`The logprobs have ${data.length} bytes in place of ${offsets.at(-1)}.`)
  return offsets.slice(1).map((end, row) => {
    const bytes = data.subarray(offsets[row], end)
    if (type === dtype.float32) return numbersIn(Float32Array, bytes)
    // The upper half of a float32.
    return new Float32Array(Uint32Array.from(numbersIn(Uint16Array, bytes), (half) => half << 16).buffer)
  })
}

const inOrder = <T>(map: Readonly<Record<string, T>>) => Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1))
const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView) => new Uint8Array(buffer, byteOffset, byteLength)

const messagesIn = (message: Buffer, field: number): Buffer[] =>
  [...protobufFields(message)].flatMap(({ number, value }) => (number === field && typeof value !== 'number' ? [value] : []))

const bytesIn = (message: Buffer, field: number): Buffer => messagesIn(message, field).at(-1) ?? Buffer.alloc(0)

const doubleIn = (message: Buffer, field: number): number => {
  const bytes = bytesIn(message, field)
  return bytes.length === 8 ? bytes.readDoubleLE() : 0
}

interface NumberArray<T> {
  readonly BYTES_PER_ELEMENT: number
  new (buffer: ArrayBuffer): T
}

/** Reads numbers from little-endian bytes. The bytes are copied, because those of a message begin anywhere. */
function numbersIn<T>(type: NumberArray<T>, bytes: Buffer): T {
  if (bytes.length % type.BYTES_PER_ELEMENT !== 0)
    throw new RangeError(`${bytes.length} bytes are no list of numbers of ${type.BYTES_PER_ELEMENT} bytes.`)
  return new type(Uint8Array.from(bytes).buffer)
}
