const unitMs: Readonly<Record<string, number>> = { '': 1_000, ms: 1, s: 1_000, m: 60_000 }

/** Reads `30s`, `500ms`, `2m` or seconds without a unit as milliseconds; `null` for anything else. */
export function readDuration(text: string): number | null {
  const { value, unit = '' } = /^(?<value>\d{1,9}(?:\.\d{1,3})?)(?<unit>ms|s|m)?$/.exec(text)?.groups ?? {}
  return value === undefined ? null : Number(value) * unitMs[unit]!
}
