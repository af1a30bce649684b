import { expect, test } from 'vitest'
import { BoundedOutput } from './bounded-output.ts'

function taken(limitBytes: number, ...chunks: readonly (string | Buffer)[]) {
  const output = new BoundedOutput(limitBytes)
  for (const chunk of chunks) output.add(Buffer.from(chunk))
  return output.take()
}

test('output within the limit is whole, in however many pieces it came', () => {
  expect(taken(10, '12345', '', '678', '90')).toEqual({ output: '1234567890', omittedBytes: 0 })
  expect(taken(10)).toEqual({ output: '', omittedBytes: 0 })
})

test('of more the first half and the last are kept, and the number of bytes between them', () => {
  expect(taken(10, '12345678901')).toEqual({ output: '12345\n[1 bytes left out]\n78901', omittedBytes: 1 })
  expect(taken(10, ...'abcdefghijklmnopqrstuvwxyz')).toEqual({ output: 'abcde\n[16 bytes left out]\nvwxyz', omittedBytes: 16 })
  expect(taken(6, 'ab', 'x'.repeat(1000), 'yz')).toEqual({ output: 'abx\n[998 bytes left out]\nxyz', omittedBytes: 998 })
})

test('a limit that keeps nothing still says how much there was', () => {
  expect(taken(1, 'hello', '\n')).toEqual({ output: '\n[6 bytes left out]\n', omittedBytes: 6 })
  expect(taken(0, 'hello')).toEqual({ output: '\n[5 bytes left out]\n', omittedBytes: 5 })
})

test('characters are left out whole, and count as left out', () => {
  // Each is seven bytes: two characters of three bytes and one of one.
  expect(taken(8, 'a€€', 'middle', '€€b')).toEqual({ output: 'a€\n[12 bytes left out]\n€b', omittedBytes: 12 })
})

test('bytes that are no UTF-8 are replaced', () => {
  expect(taken(10, Buffer.from([0x61, 0xff, 0x80, 0x62]))).toEqual({ output: 'a��b', omittedBytes: 0 })
})

test('what was taken is not taken again', () => {
  const output = new BoundedOutput(4)
  output.add(Buffer.from('1234567'))
  output.take()
  output.add(Buffer.from('ab'))
  expect(output.take()).toEqual({ output: 'ab', omittedBytes: 0 })
})
