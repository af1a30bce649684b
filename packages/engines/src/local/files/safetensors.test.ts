import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TrainError } from '@aworld-train/core'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bfloat16ToFloat32, float16ToFloat32 } from './half-floats.ts'
import { readSafetensors, type Tensor, writeSafetensors } from './safetensors.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'safetensors-'))
})
afterAll(() => rm(folder, { recursive: true }))

const tensors: [string, Tensor][] = [
  ['b', { shape: [2, 3], data: Float32Array.of(1, -2, 3.5, 0, Number.POSITIVE_INFINITY, 1e-40) }],
  ['a.weight', { shape: [4], data: Float32Array.of(4, 5, 6, 7) }],
  ['empty', { shape: [0, 7], data: new Float32Array(0) }],
]

/** Writes a file of the given header and data, as another program might. */
async function foreignFile(name: string, header: unknown, data: Uint8Array): Promise<string> {
  const path = join(folder, name)
  const json = Buffer.from(typeof header === 'string' ? header : JSON.stringify(header))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(json.length))
  await writeFile(path, Buffer.concat([length, json, data]))
  return path
}

const reasonOf = async (promise: Promise<unknown>): Promise<string> => {
  const error = await promise.then(
    () => expect.fail('it was accepted'),
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(TrainError)
  expect((error as TrainError).code).toBe('CHECKPOINT_CORRUPT')
  return (error as TrainError).message
}

describe('safetensors', () => {
  it('reads back what it wrote, in order, and the same input gives the same bytes', async () => {
    const path = join(folder, 'a.safetensors')
    await writeSafetensors(path, tensors, { format: 'pt' })
    const read = await readSafetensors(path)
    expect([...read.tensors]).toEqual(tensors)
    expect(read.metadata).toEqual({ format: 'pt' })
    const again = join(folder, 'again.safetensors')
    await writeSafetensors(again, tensors, { format: 'pt' })
    expect(await readFile(again)).toEqual(await readFile(path))
  })

  it('reads bf16 and f16 exactly, at offsets that are not multiples of four', async () => {
    const halves = Uint8Array.from([0x80, 0x3f, 0x00, 0x3c, 0x01, 0x00, 0x00, 0xfc])
    const header = {
      x: { dtype: 'BF16', shape: [1], data_offsets: [0, 2] },
      y: { dtype: 'F16', shape: [3], data_offsets: [2, 8] },
    }
    const { tensors: read } = await readSafetensors(await foreignFile('halves.safetensors', header, halves))
    expect(Array.from(read.get('x')!.data)).toEqual([1])
    expect(Array.from(read.get('y')!.data)).toEqual([1, 2 ** -24, Number.NEGATIVE_INFINITY])
  })

  it('widens every 16-bit pattern to a value that narrows to it again', () => {
    const all = Uint16Array.from({ length: 65_536 }, (_, i) => i)
    const brain = new Uint32Array(bfloat16ToFloat32(all).buffer)
    for (const half of all) expect(brain[half]! >>> 16).toBe(half)
    const half = float16ToFloat32(all)
    for (let i = 0; i < 0x7c00; i++) {
      expect(half[i + 1]! > half[i]!).toBe(true)
      expect(Object.is(half[i | 0x8000], -half[i]!)).toBe(true)
    }
    expect([half[0x3555], half[0x7bff], half[0x7e00]]).toEqual([0.333251953125, 65_504, Number.NaN])
  })

  it('names the file and the reason for every truncation', async () => {
    const path = join(folder, 'cut.safetensors')
    await writeSafetensors(path, tensors)
    const whole = await readFile(path)
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: whole.length - 1 }), async (length) => {
        await writeFile(path, whole)
        await truncate(path, length)
        expect(await reasonOf(readSafetensors(path))).toContain(path)
      }),
      { numRuns: 40 },
    )
  })

  it.each([
    ['a header that is not JSON', '{"a":', 'not JSON'],
    ['a header that is a list', '[]', 'not an object'],
    ['an unknown type', { a: { dtype: 'I64', shape: [1], data_offsets: [0, 8] } }, 'I64'],
    ['a shape that does not fit', { a: { dtype: 'F32', shape: [3], data_offsets: [0, 8] } }, 'its shape [3] takes 12'],
    [
      'overlapping tensors',
      { a: { dtype: 'F32', shape: [2], data_offsets: [0, 8] }, b: { dtype: 'F32', shape: [1], data_offsets: [4, 8] } },
      '"b"',
    ],
    ['a gap', { a: { dtype: 'F32', shape: [1], data_offsets: [4, 8] } }, 'starts at 4'],
    ['trailing bytes', { a: { dtype: 'F32', shape: [1], data_offsets: [0, 4] } }, '4 bytes follow'],
    ['negative offsets', { a: { dtype: 'F32', shape: [1], data_offsets: [-4, 0] } }, 'no valid shape and offsets'],
  ])('refuses %s', async (name, header, reason) => {
    const path = await foreignFile(`${name}.safetensors`, header, new Uint8Array(8))
    expect(await reasonOf(readSafetensors(path))).toContain(reason)
  })

  it('says so when the file is absent', async () => {
    expect(await reasonOf(readSafetensors(join(folder, 'absent.safetensors')))).toContain('absent.safetensors cannot be used')
  })
})
