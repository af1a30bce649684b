import { endianness } from 'node:os'

type Numbers = Int32Array | Float32Array

const isBigEndian = endianness() === 'BE'

/** The bytes of numbers, in the machine's order. */
export function memoryOf(numbers: Numbers): Uint8Array {
  return new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength)
}

/** Numbers of 32 bits as little-endian bytes, on every machine. */
export function toLittleEndian(numbers: Numbers): Uint8Array {
  return isBigEndian ? Buffer.from(memoryOf(numbers)).swap32() : memoryOf(numbers)
}

/** Fills `numbers` from `start` on with the numbers that toLittleEndian wrote as `bytes`. */
export function fromLittleEndian<T extends Numbers>(bytes: Uint8Array, numbers: T, start = 0): T {
  memoryOf(numbers).set(isBigEndian ? Buffer.from(bytes).swap32() : bytes, start * 4)
  return numbers
}
