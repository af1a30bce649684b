const maxDigits = 10

/** `before`, the ids as a JSON array, `after`: the bytes of a request without a string of its ids, which is most of it. */
export function encodeIds(before: string, ids: Int32Array, after: string): Buffer {
  const buffer = Buffer.allocUnsafe(before.length * 3 + ids.length * (maxDigits + 1) + after.length * 3 + 2)
  let at = buffer.write(before)
  buffer[at++] = 0x5b
  for (let index = 0; index < ids.length; index++) {
    if (index > 0) buffer[at++] = 0x2c
    let id = ids[index]!
    let digits = 1
    for (let bound = 10; digits < maxDigits && id >= bound; bound *= 10) digits++
    for (let place = at + digits - 1; place >= at; place--) {
      buffer[place] = 0x30 + (id % 10)
      id = (id / 10) | 0
    }
    at += digits
  }
  buffer[at++] = 0x5d
  return buffer.subarray(0, at + buffer.write(after, at))
}
