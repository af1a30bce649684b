/** bfloat16 is the upper half of a float32. */
export function bfloat16ToFloat32(halves: Uint16Array): Float32Array {
  const words = new Uint32Array(halves.length)
  for (let i = 0; i < halves.length; i++) words[i] = halves[i]! << 16
  return new Float32Array(words.buffer)
}

/** Converts IEEE 754 binary16 to binary32 exactly, including infinities, NaN and subnormals. */
export function float16ToFloat32(halves: Uint16Array): Float32Array {
  const values = new Float32Array(halves.length)
  for (let i = 0; i < halves.length; i++) {
    const half = halves[i]!
    const sign = half & 0x8000 ? -1 : 1
    const exponent = (half >> 10) & 31
    const fraction = half & 1023
    if (exponent === 31) values[i] = fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY
    else if (exponent === 0) values[i] = sign * fraction * 2 ** -24
    else values[i] = sign * (1 + fraction / 1024) * 2 ** (exponent - 15)
  }
  return values
}
