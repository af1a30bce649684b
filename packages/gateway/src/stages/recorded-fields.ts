/** Most characters of unused fields in the record of one turn. */
const room = 64 * 1024

/** Unused fields for the record of a turn. Beyond the limit, a field keeps its name and has a JSON string instead of its value. */
export function recordedFields(fields: Readonly<Record<string, string>>): { unusedFields?: Record<string, string> } {
  const names = Object.keys(fields)
  if (names.length === 0) return {}
  const unusedFields: Record<string, string> = {}
  let remaining = room
  for (const name of names) {
    const text = fields[name] ?? 'null'
    const value = name.length + text.length <= remaining ? text : JSON.stringify(`(${text.length} characters left out)`)
    remaining -= name.length + value.length
    Object.defineProperty(unusedFields, name, { value, enumerable: true, writable: true, configurable: true })
    if (remaining < -room) break
  }
  return { unusedFields }
}
