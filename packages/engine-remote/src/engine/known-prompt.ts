const comma = 0x2c
const close = 0x5d
const space = 0x20
const zero = 0x30

/** The prompt ids of the last answer of a conversation, and the bytes that they were written in: the next prompt begins with both. */
export interface KnownPrompt {
  /**
   * The whole numbers from `start` to the bracket at `end`, and how many of them are the last list, which is compared as bytes
   * and not read again; `null` for anything else. The ids are good until the next call.
   */
  read(bytes: Buffer, start: number, end: number): { readonly ids: Int32Array; readonly repeated: number } | null
  /** Memory that is held. */
  bytes(): number
}

/** Reads whole numbers into `ids` from index `from`; returns the index behind the last, -1 where there is anything else. */
function readIds(bytes: Buffer, start: number, end: number, ids: Int32Array, from: number): number {
  let count = from
  let at = start
  while (at <= end) {
    while (bytes[at] === space) at++
    const first = at
    let value = 0
    let byte = bytes[at++]!
    for (let digit = byte - zero; digit >= 0 && digit <= 9; digit = byte - zero) {
      value = (Math.imul(value, 10) + digit) | 0
      byte = bytes[at++]!
    }
    const digits = at - 1 - first
    if (digits === 0 || digits > 9 || (byte !== comma && byte !== close) || (byte === comma && at > end)) return -1
    ids[count++] = value
  }
  return count
}

const none = Buffer.alloc(0)

export function createKnownPrompt(): KnownPrompt {
  let text = none
  let textLength = 0
  let ids = new Int32Array(0)
  let count = 0

  /** Whether all of the last list stands at `start`. */
  function repeats(bytes: Buffer, start: number, end: number): boolean {
    const behind = start + textLength
    if (textLength === 0 || behind > end || (bytes[behind] !== comma && bytes[behind] !== close)) return false
    return bytes.compare(text, 0, textLength, start, behind) === 0
  }

  /** Room for an eighth more, so that a growing list is seldom copied. */
  function reserve(length: number, more: number): void {
    if (text.length < length) {
      const larger = Buffer.allocUnsafeSlow(length + (length >> 3))
      larger.set(text.subarray(0, textLength))
      text = larger
    }
    if (ids.length < count + more) {
      const larger = new Int32Array(count + more + ((count + more) >> 3))
      larger.set(ids.subarray(0, count))
      ids = larger
    }
  }

  return {
    read(bytes, start, end) {
      const repeated = repeats(bytes, start, end) ? count : 0
      if (repeated === 0) [textLength, count] = [0, 0]
      const from = start + textLength
      // An id takes two bytes at least, its comma included.
      reserve(end - start, ((end - from) >> 1) + 1)
      if (from < end) {
        const read = readIds(bytes, repeated === 0 ? from : from + 1, end, ids, count)
        if (read < 0) {
          ;[textLength, count] = [0, 0]
          return null
        }
        bytes.copy(text, textLength, from, end)
        count = read
      }
      textLength = end - start
      return { ids: ids.subarray(0, count), repeated }
    },
    bytes: () => text.length + ids.byteLength,
  }
}
