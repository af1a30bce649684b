import { expect, it } from 'vitest'
import { crc32c } from './crc32c.ts'

// RFC 3720, appendix B.4, and the check value of the catalogue of parametrised CRC algorithms.
it.each([
  ['32 zeros', new Uint8Array(32), 0x8a9136aa],
  ['32 ones', new Uint8Array(32).fill(255), 0x62a8ab43],
  ['0 to 31', Uint8Array.from({ length: 32 }, (_, index) => index), 0x46dd794e],
  ['"123456789"', new TextEncoder().encode('123456789'), 0xe3069283],
])('%s', (_name, bytes, expected) => {
  expect(crc32c(bytes)).toBe(expected)
})
