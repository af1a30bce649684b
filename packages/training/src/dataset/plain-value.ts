/**
 * Converts a value of a columnar format to a value of JSON: safe 64-bit integers become numbers, larger ones decimal text, dates ISO text.
 * A member that is `null` is left out at every depth, because such formats give each struct the members of all.
 */
export function plainValue(value: unknown): unknown {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : value.toString()
  if (value === null || typeof value !== 'object') return value
  if (value instanceof Date) return value.toISOString()
  if (value instanceof Uint8Array) return Buffer.from(value).toString('utf8')
  if (ArrayBuffer.isView(value)) return Array.from(value as Int32Array, plainValue)
  if (Array.isArray(value)) return value.map(plainValue)
  return plainObject(value, plainValue)
}

/** Builds an object of the members that have a value, each read by `read`. */
export function plainObject(value: object, read: (member: unknown) => unknown): Record<string, unknown> {
  const members = Object.entries(value).filter(([, member]) => member !== null && member !== undefined)
  return Object.fromEntries(members.map(([key, member]) => [key, read(member)]))
}
