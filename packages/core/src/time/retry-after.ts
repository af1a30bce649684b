/** Milliseconds of a `Retry-After` header, which has seconds or a date; `null` if it has neither. */
export function retryAfterMs(value: string | null): number | null {
  if (value === null || value === '') return null
  const ms = /^\d+(\.\d+)?$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now()
  return Number.isFinite(ms) ? Math.max(0, ms) : null
}
