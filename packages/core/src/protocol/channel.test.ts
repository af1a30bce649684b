import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import {
  type ChannelArrays,
  type ChannelFrame,
  channelKey,
  decodeChannelFrame,
  encodeChannelFrame,
  parseChannelKey,
  ServiceMessage,
  TrainerClientMessage,
} from '../index.ts'
import { goldenMessages } from './channel-corpus.test-support.ts'

const corpus = fileURLToPath(new URL('../../corpus/channel/', import.meta.url))

interface GoldenFrame {
  readonly from: 'client' | 'service'
  readonly message: Record<string, unknown>
  readonly arrays: readonly { readonly name: string; readonly type: 'int32' | 'float32' | 'uint8'; readonly values: readonly number[] }[]
  /** The content of a text frame. */
  readonly text?: string
  /** The content of a binary frame. */
  readonly hex?: string
}

const read = (name: string): GoldenFrame => JSON.parse(readFileSync(`${corpus}${name}.json`, 'utf8'))
const plain = (arrays: ChannelArrays) =>
  Object.entries(arrays).map(([name, array]) => ({
    name,
    type: array instanceof Int32Array ? 'int32' : array instanceof Float32Array ? 'float32' : 'uint8',
    values: Array.from(array, (value) => (Object.is(value, -0) ? 0 : value)),
  }))

describe('the corpus of golden frames', () => {
  const names = Object.keys(goldenMessages)

  it('has one frame of every message', () => {
    expect(readdirSync(corpus).sort()).toEqual(names.map((name) => `${name}.json`).sort())
    const types = new Set(names.map((name) => goldenMessages[name]!.message.type))
    const schemaTypes = [TrainerClientMessage, ServiceMessage].flatMap(({ options }) => options.map((option) => option.shape.type.value))
    expect([...types].sort()).toEqual([...schemaTypes].sort())
  })

  it.each(names)('%s is written as it stands there, and read back', (name) => {
    const { from, message, arrays } = goldenMessages[name]!
    const golden = read(name)
    const frame = encodeChannelFrame(message, arrays)
    expect({ from, ...(typeof frame === 'string' ? { text: frame } : { hex: Buffer.from(frame).toString('hex') }) }).toEqual({
      from: golden.from,
      ...(golden.text !== undefined ? { text: golden.text } : { hex: golden.hex }),
    })
    const decoded = decodeChannelFrame(golden.text ?? Buffer.from(golden.hex!, 'hex'))
    expect(decoded.message).toEqual(golden.message)
    expect(plain(decoded.arrays)).toEqual(golden.arrays)
    const schema = from === 'client' ? TrainerClientMessage : ServiceMessage
    expect(schema.parse(decoded.message)).toEqual(message)
    expect(schema.safeParse({ ...decoded.message, surprise: 1 }).success).toBe(false)
  })
})

const arrays = fc.dictionary(
  fc.string(),
  fc.oneof(
    fc.array(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })).map((values) => Int32Array.from(values)),
    fc.array(fc.float({ noNaN: true })).map((values) => Float32Array.from(values)),
    fc.uint8Array(),
  ),
  { noNullPrototype: true },
)
const message = fc.dictionary(
  fc.string().filter((name) => name !== 'arrays' && name !== '__proto__'),
  fc.jsonValue(),
  { noNullPrototype: true },
)

test('any message with any arrays is read back as it was written, at any alignment', () => {
  fc.assert(
    fc.property(message, arrays, fc.nat(7), (head, columns, shift) => {
      const frame = encodeChannelFrame(head, columns)
      let decoded: ChannelFrame
      if (typeof frame === 'string') decoded = decodeChannelFrame(frame)
      else {
        const shifted = new Uint8Array(frame.length + shift)
        shifted.set(frame, shift)
        decoded = decodeChannelFrame(shifted.subarray(shift))
        const buffer = Buffer.from(shifted.buffer, shift, frame.length)
        expect(decodeChannelFrame(buffer)).toEqual(decoded)
      }
      expect(JSON.stringify(decoded.message)).toEqual(JSON.stringify(head))
      expect(Object.entries(decoded.arrays)).toEqual(Object.entries(columns))
    }),
  )
})

test('an aligned frame is read without a copy', () => {
  const frame = encodeChannelFrame({ type: 'generate' }, { promptIds: Int32Array.of(1, 2) }) as Uint8Array
  expect(decodeChannelFrame(frame).arrays['promptIds']!.buffer).toBe(frame.buffer)
})

test('bytes cut anywhere or changed anywhere never throw anything but CHANNEL_INVALID', () => {
  const frame = encodeChannelFrame({ type: 'generated', id: 1 }, { ids: Int32Array.of(1, 2), mask: Uint8Array.of(1) }) as Uint8Array
  const attempt = (bytes: Uint8Array) => {
    try {
      decodeChannelFrame(bytes)
    } catch (error) {
      expect(error).toMatchObject({ code: 'CHANNEL_INVALID' })
    }
  }
  for (let length = 0; length < frame.length; length++) {
    expect(() => decodeChannelFrame(frame.slice(0, length))).toThrow(expect.objectContaining({ code: 'CHANNEL_INVALID' }))
  }
  fc.assert(
    fc.property(fc.nat(frame.length - 1), fc.nat(255), (at, value) => {
      const changed = frame.slice()
      changed[at] = value
      attempt(changed)
    }),
  )
  fc.assert(fc.property(fc.uint8Array(), attempt))
})

test.each([
  ['two arrays of one name', { arrays: [head('a', 0), head('a', 0)] }],
  ['an array of an unknown type', { arrays: [{ ...head('a', 0), type: 'float64' }] }],
  ['an array of a negative length', { arrays: [head('a', -1)] }],
  ['an array of half a token', { arrays: [head('a', 0.5)] }],
  ['no list of arrays', { arrays: null }],
  ['an array beyond the frame', { arrays: [head('a', 2 ** 52)] }],
])('%s is refused', (_name, header) => {
  const text = Buffer.from(JSON.stringify(header))
  const frame = Buffer.alloc(Math.ceil((4 + text.length) / 4) * 4)
  frame.writeUInt32LE(text.length)
  text.copy(frame, 4)
  expect(() => decodeChannelFrame(frame)).toThrow(expect.objectContaining({ code: 'CHANNEL_INVALID' }))
})

function head(name: string, length: number) {
  return { name, type: 'int32', length }
}

test('a key holds its parts whatever they are, and nothing else is a key', () => {
  const part = fc.string({ unit: 'grapheme', minLength: 1 })
  fc.assert(
    fc.property(
      part,
      part,
      fc.constantFrom('train' as const, 'val' as const),
      fc.integer(),
      part,
      fc.nat(),
      (run, incarnation, partition, step, uid, sample) => {
        const parts = { run, incarnation, partition, step, uid, sample }
        expect(parseChannelKey(channelKey(parts))).toEqual(parts)
      },
    ),
  )
  for (const key of [
    '',
    'a/b',
    'a/b/test/1/u/0',
    'a/b/train/one/u/0',
    'a/b/train/1/u/0/x',
    'a/b/train/01/u/0',
    '%/b/train/1/u/0',
    'a b/b/train/1/u/0',
  ])
    expect(parseChannelKey(key)).toBeNull()
})
