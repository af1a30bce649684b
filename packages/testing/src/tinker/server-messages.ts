import { type GenerateResult, protobuf, protobufFields } from '@aworld-train/core'

// The server's side of the messages in `tinker_public.proto`, as SkyRL 0.4 reads and writes them.

export interface ForwardBackwardCall {
  readonly modelId: string
  readonly lossFunction: string
  readonly lossConfig: Readonly<Record<string, number>>
  readonly forwardOnly: boolean
  readonly rows: readonly { readonly tokens: Int32Array; readonly inputs: Readonly<Record<string, readonly number[]>> }[]
}

type Fields = ReadonlyMap<number, readonly (number | Buffer)[]>

const fieldsOf = (message: Buffer): Fields => {
  const fields = new Map<number, (number | Buffer)[]>()
  for (const { number, value } of protobufFields(message)) fields.set(number, [...(fields.get(number) ?? []), value])
  return fields
}
const messages = (fields: Fields, field: number) => (fields.get(field) ?? []).filter((value) => Buffer.isBuffer(value))
const bytes = (fields: Fields, field: number) => messages(fields, field).at(-1) ?? Buffer.alloc(0)
const numbers = (fields: Fields, field: number) => (fields.get(field) ?? []).filter((value) => typeof value === 'number')
const text = (fields: Fields, field: number) => bytes(fields, field).toString('utf8')
const aligned = (buffer: Buffer) => Uint8Array.from(buffer).buffer

/** Decodes a ForwardBackwardRequest. Throws RangeError for a message that is cut off. */
export function decodeForwardBackwardCall(message: Buffer): ForwardBackwardCall {
  const fields = fieldsOf(message)
  return {
    modelId: text(fields, 1),
    lossFunction: text(fields, 4),
    lossConfig: Object.fromEntries(
      messages(fields, 5)
        .map(fieldsOf)
        .map((entry) => [text(entry, 1), bytes(entry, 2).readDoubleLE()]),
    ),
    forwardOnly: numbers(fields, 6).at(-1) === 1,
    rows: messages(fields, 3).map((datum) => {
      const parts = fieldsOf(datum)
      const chunk = fieldsOf(bytes(parts, 1))
      const inputs = messages(parts, 2).map(fieldsOf)
      return {
        tokens: new Int32Array(aligned(bytes(fieldsOf(bytes(chunk, 1)), 1))),
        inputs: Object.fromEntries(inputs.map((entry) => [text(entry, 1), decodeTensor(fieldsOf(bytes(entry, 2)))])),
      }
    }),
  }
}

function decodeTensor(tensor: Fields): number[] {
  const dense = aligned(bytes(tensor, 1))
  return numbers(tensor, 3).at(-1) === 2 ? Array.from(new BigInt64Array(dense), Number) : Array.from(new Float32Array(dense))
}

const viewOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView) => new Uint8Array(buffer, byteOffset, byteLength)

/** Encodes a SampleResponse. */
export function encodeSamples(samples: readonly Pick<GenerateResult, 'tokenIds' | 'logprobs' | 'finishReason'>[]): Buffer {
  return Buffer.concat(
    samples.map(({ tokenIds, logprobs, finishReason }) =>
      protobuf.bytes(
        1,
        ...(finishReason.unified === 'stop' ? [] : [protobuf.varint(1, 1)]),
        protobuf.bytes(2, viewOf(tokenIds)),
        protobuf.bytes(3, viewOf(logprobs)),
      ),
    ),
  )
}

/** Encodes a ForwardBackwardOutput. */
export function encodeLogprobs(rows: readonly Float32Array[], metrics: Readonly<Record<string, number>>): Buffer {
  const offsets = [0]
  for (const { byteLength } of rows) offsets.push(offsets.at(-1)! + byteLength)
  const tensor = [
    protobuf.bytes(1, ...rows.map(viewOf)),
    protobuf.bytes(2, viewOf(BigInt64Array.from(offsets, BigInt))),
    protobuf.varint(3, 1),
  ]
  const field = protobuf.bytes(2, protobuf.text(1, 'logprobs'), protobuf.bytes(2, ...tensor))
  return Buffer.concat([
    protobuf.text(1, 'loss'),
    protobuf.bytes(2, field, protobuf.varint(3, rows.length)),
    ...Object.entries(metrics).map(([name, value]) => protobuf.bytes(3, protobuf.text(1, name), protobuf.double(2, value))),
  ])
}
