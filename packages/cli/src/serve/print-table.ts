/** Formats rows of two aligned columns; each line ends with a line feed. */
export function toTable(rows: readonly (readonly [name: string, value: string])[], indent = ''): string {
  const width = Math.max(...rows.map(([name]) => name.length))
  return rows.map(([name, value]) => `${indent}${name.padEnd(width)}  ${value}\n`).join('')
}

const kilo = 1024
const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** Formats bytes with a unit, such as `64 MiB` for 67108864. Whole numbers stay whole. */
function bytes(value: number): string {
  let scaled = value
  let unit = 0
  while (scaled >= kilo && unit < units.length - 1) {
    scaled /= kilo
    unit++
  }
  return `${Number.isInteger(scaled) ? scaled : scaled.toFixed(1)} ${units[unit]}`
}

/** Descriptions of limits that follow from the models. */
const derived: Readonly<Record<string, string>> = {
  maxBodyBytes: '8 x the largest maxPromptBytes, at least 1 MiB',
  maxPromptBytes: '16 B for each token of context',
}

/** Limits with units for people. The ending of a name determines the unit. */
export function limitRows(limits: Readonly<Record<string, number | null>>): (readonly [string, string])[] {
  return Object.entries(limits).map(([name, value]) => {
    if (value === null) return [name, derived[name] ?? 'none']
    if (name.endsWith('Bytes')) return [name, bytes(value)]
    if (name.endsWith('Ms')) return [name, value % 1_000 === 0 ? `${value / 1_000} s` : `${value} ms`]
    return [name, String(value)]
  })
}
