/** A value of a binary format as a value of JSON: safe 64-bit integers become numbers, larger ones decimal text, dates ISO text. */
export function plainValue(value: unknown): unknown {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : value.toString()
  if (value === null || typeof value !== 'object') return value
  if (value instanceof Date) return value.toISOString()
  if (value instanceof Uint8Array) return Buffer.from(value).toString('utf8')
  if (ArrayBuffer.isView(value)) return Array.from(value as Int32Array, plainValue)
  if (Array.isArray(value)) return value.map(plainValue)
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, plainValue(member)]))
}
