// The wire format of protocol buffers (protobuf.dev/programming-guides/encoding): a message is its fields, one after another.

const wire = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const

/** A field of a message: a whole number of at most 53 bits, or the bytes of a text, a message, a packed list or a fixed number. */
export interface ProtobufField {
  readonly number: number
  readonly value: number | Buffer
}

/** Encodes fields as bytes. A message is the `Buffer.concat` of its fields. */
export const protobuf = {
  /** A non-negative whole number: int32, int64, an enum or a bool. */
  varint: (number: number, value: number): Buffer => field(number, wire.varint, varint(value)),
  float(number: number, value: number): Buffer {
    const bytes = Buffer.alloc(4)
    bytes.writeFloatLE(value)
    return field(number, wire.fixed32, bytes)
  },
  double(number: number, value: number): Buffer {
    const bytes = Buffer.alloc(8)
    bytes.writeDoubleLE(value)
    return field(number, wire.fixed64, bytes)
  },
  text: (number: number, value: string): Buffer => protobuf.bytes(number, Buffer.from(value)),
  /** A message of these fields, or bytes as they are. */
  bytes(number: number, ...parts: readonly Uint8Array[]): Buffer {
    const length = parts.reduce((sum, part) => sum + part.byteLength, 0)
    return Buffer.concat([varint((number << 3) | wire.bytes), varint(length), ...parts])
  },
  /** Whole numbers of a packed list. */
  packed: (number: number, values: readonly number[]): Buffer => protobuf.bytes(number, ...values.map(varint)),
}

/** Reads the fields of a message, in their order. Throws RangeError if it is cut off. */
export function* protobufFields(message: Buffer): Generator<ProtobufField> {
  let at = 0
  const readVarint = (): number => {
    let value = 0
    for (let scale = 1; ; scale *= 128) {
      const byte = message[at++]
      if (byte === undefined) throw new RangeError('The message ends within a number.')
      value += (byte & 127) * scale
      if (byte < 128) return value
    }
  }
  while (at < message.length) {
    const key = readVarint()
    const [number, type] = [Math.floor(key / 8), key & 7]
    if (type === wire.varint) {
      yield { number, value: readVarint() }
      continue
    }
    const lengths: Readonly<Record<number, () => number>> = { [wire.bytes]: readVarint, [wire.fixed64]: () => 8, [wire.fixed32]: () => 4 }
    const length = lengths[type]?.()
    if (length === undefined) throw new RangeError(`Field ${number} of the message has the unknown wire type ${type}.`)
    if (at + length > message.length) throw new RangeError(`The message ends within field ${number}.`)
    yield { number, value: message.subarray(at, at + length) }
    at += length
  }
}

const field = (number: number, type: number, value: Buffer) => Buffer.concat([varint((number << 3) | type), value])

function varint(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128)
  return Buffer.from([...bytes, rest])
}
