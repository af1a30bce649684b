import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { moduleProblems, sectionIds } from './inspect-module.ts'
import { chooseTier, kernelsUrl, supportsRelaxedSimd } from './load-kernels.ts'
import { wasm } from './webassembly.ts'

const header = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00]
const memoryImport = [0x02, 0x11, 0x01, 3, ...Buffer.from('env'), 6, ...Buffer.from('memory'), 0x02, 0x03, 0x01, 0x80, 0x80, 0x04]
memoryImport[1] = memoryImport.length - 2

describe.each(['plain', 'relaxed'] as const)('the %s module', (tier) => {
  it('has no state of its own and imports the memory alone', async () => {
    const bytes = await readFile(kernelsUrl(tier))
    expect(moduleProblems(bytes)).toEqual([])
    expect(wasm.Module.imports(new wasm.Module(bytes))).toEqual([{ module: 'env', name: 'memory', kind: 'memory' }])
    for (const section of [4, 6, 8, 9, 11, 12]) expect(sectionIds(bytes)).not.toContain(section)
  })

  it('exports functions only', async () => {
    const kinds = wasm.Module.exports(new wasm.Module(await readFile(kernelsUrl(tier)))).map(({ kind }) => kind)
    expect(new Set(kinds)).toEqual(new Set(['function']))
  })
})

it('takes only the relaxed module for one with relaxed instructions', async () => {
  // 0xfd 0x85 0x02: f32x4.relaxed_madd
  const opcode = Buffer.from([0xfd, 0x85, 0x02])
  expect((await readFile(kernelsUrl('relaxed'))).includes(opcode)).toBe(true)
  expect((await readFile(kernelsUrl('plain'))).includes(opcode)).toBe(false)
})

describe('inspection of a module', () => {
  it.each([
    ['a mutable global', [...memoryImport, 0x06, 0x06, 0x01, 0x7f, 0x01, 0x41, 0x00, 0x0b], 'It has a global section.'],
    ['static data', [...memoryImport, 0x0b, 0x07, 0x01, 0x00, 0x41, 0x00, 0x0b, 0x01, 0x2a], 'It has a data section.'],
    ['a table', [...memoryImport, 0x04, 0x04, 0x01, 0x70, 0x00, 0x01], 'It has a table section.'],
    ['a memory of its own', [0x05, 0x03, 0x01, 0x00, 0x01], 'It imports nothing instead of env.memory alone.'],
    ['bytes that are no module', [0x7f], 'It is not a module that this engine runs.'],
  ])('reports %s', (_name, body, problem) => {
    expect(moduleProblems(Uint8Array.from([...header, ...body]))).toEqual([problem])
  })
})

describe('the tier', () => {
  it('is the one asked for, else that of the environment, else the best', () => {
    const before = process.env['AWORLD_TRAIN_SIMD']
    try {
      process.env['AWORLD_TRAIN_SIMD'] = 'plain'
      expect(chooseTier()).toBe('plain')
      if (supportsRelaxedSimd()) expect(chooseTier('relaxed')).toBe('relaxed')
      process.env['AWORLD_TRAIN_SIMD'] = 'wide'
      expect(() => chooseTier()).toThrow('The SIMD tier "wide" is unknown; set AWORLD_TRAIN_SIMD to plain or relaxed')
      delete process.env['AWORLD_TRAIN_SIMD']
      expect(chooseTier()).toBe(supportsRelaxedSimd() ? 'relaxed' : 'plain')
    } finally {
      if (before === undefined) delete process.env['AWORLD_TRAIN_SIMD']
      else process.env['AWORLD_TRAIN_SIMD'] = before
    }
  })
})
