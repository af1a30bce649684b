const secretName = /(^|[a-z0-9_-])(api[-_]?key|secret|password|passwd|authorization|token|bearer|credentials?)$/i

/** Copies JSON-like `value`, with values under the name of a secret replaced by `[redacted]`. */
export function redactSecrets(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(redactSecrets)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, entry]) => [
      name,
      secretName.test(name) && typeof entry === 'string' ? '[redacted]' : redactSecrets(entry),
    ]),
  )
}
