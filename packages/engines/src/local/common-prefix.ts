/** Number of leading tokens that two rows share. */
export function commonPrefix(a: Int32Array, b: Int32Array): number {
  const limit = Math.min(a.length, b.length)
  let length = 0
  while (length < limit && a[length] === b[length]) length++
  return length
}
