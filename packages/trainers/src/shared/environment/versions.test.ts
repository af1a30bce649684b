import { describe, expect, it } from 'vitest'
import { compareVersions } from './versions.ts'

describe('compareVersions', () => {
  it.each([
    ['0.9', [0, 9, 0], 0],
    ['0.9.0.post1', [0, 9], 0],
    ['0.10', [0, 9], 1],
    ['2.13.0+cu130', [2, 13], 0],
    ['0.9.0.dev3', [0, 9], -1],
    ['v1.2', [1, 2, 1], -1],
    ['unknown', [0, 1], -1],
  ] as const)('%s against %j', (version, release, sign) => {
    expect(Math.sign(compareVersions(version, release))).toBe(sign)
  })
})
