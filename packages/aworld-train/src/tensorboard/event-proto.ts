/** One value of each tag at one step. */
export interface ScalarsOfStep {
  readonly step: number
  readonly values: Readonly<Record<string, number>>
}

// Numbers of fields and wire types: tensorflow/core/util/event.proto and framework/summary.proto, encoded as protobuf.dev/programming-guides/encoding says.
const wire = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const
const eventField = { wallTime: 1, step: 2, fileVersion: 3, summary: 5 } as const
const summaryField = { value: 1 } as const
const valueField = { tag: 1, simpleValue: 2 } as const

/** The first event of every file. */
export const encodeFileVersion = (atMs: number): Buffer =>
  Buffer.concat([field(eventField.wallTime, wire.fixed64, double(atMs / 1_000)), text(eventField.fileVersion, 'brain.Event:2')])

/** Values are kept as 32-bit floats, as by every writer of such files. */
export function encodeScalars({ step, values }: ScalarsOfStep, atMs: number): Buffer {
  const summary = Object.entries(values).map(([tag, value]) =>
    message(summaryField.value, [text(valueField.tag, tag), field(valueField.simpleValue, wire.fixed32, float(value))]),
  )
  return Buffer.concat([
    field(eventField.wallTime, wire.fixed64, double(atMs / 1_000)),
    field(eventField.step, wire.varint, varint(step)),
    message(eventField.summary, summary),
  ])
}

/** The step and the tags of an event. */
export function decodeTags(event: Buffer): { readonly step: number; readonly tags: string[] } {
  let step = 0
  const tags: string[] = []
  for (const { number, value } of fieldsIn(event)) {
    if (number === eventField.step && typeof value === 'number') step = value
    if (number !== eventField.summary || typeof value === 'number') continue
    for (const entry of fieldsIn(value)) {
      if (entry.number !== summaryField.value || typeof entry.value === 'number') continue
      for (const part of fieldsIn(entry.value))
        if (part.number === valueField.tag && typeof part.value !== 'number') tags.push(part.value.toString('utf8'))
    }
  }
  return { step, tags }
}

/** The fields of a message, in their order. */
function* fieldsIn(message: Buffer): Generator<{ readonly number: number; readonly value: Buffer | number }> {
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
    const [number, type] = [key >>> 3, key & 7]
    if (type === wire.varint) yield { number, value: readVarint() }
    else {
      const length = type === wire.bytes ? readVarint() : type === wire.fixed64 ? 8 : 4
      yield { number, value: message.subarray(at, at + length) }
      at += length
    }
  }
}

const field = (number: number, type: number, value: Buffer) => Buffer.concat([varint((number << 3) | type), value])
const text = (number: number, value: string) => message(number, [Buffer.from(value)])

function message(number: number, parts: readonly Buffer[]): Buffer {
  const value = Buffer.concat(parts)
  return field(number, wire.bytes, Buffer.concat([varint(value.length), value]))
}

function varint(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128)
  return Buffer.from([...bytes, rest])
}

function double(value: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeDoubleLE(value)
  return bytes
}

function float(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeFloatLE(value)
  return bytes
}
