// Parts of a whole to scale, as one bar, and as a column for each step.
import { hoverStep } from './chart.tsx'
import { percent } from './format.ts'

export interface Part {
  readonly name: string
  readonly value: number
  readonly tone: string
  readonly text: string
  readonly href?: string | undefined
}
/** Parts of a whole as one bar to scale, and the same as a table. */
export function Share({ parts, total, label }: { parts: readonly Part[]; total: number; label: string }) {
  const all = Math.max(total, 1e-9)
  return (
    <div class="share">
      <div
        // Changed values are drawn anew, like a chart, so that nothing moves over the page.
        key={parts.map(({ value }) => value).join()}
        class="share-bar"
        role="img"
        aria-label={`${label}: ${parts.map(({ name, value }) => `${name} ${percent(value / all)}`).join(', ')}`}
      >
        {parts.map(({ name, value, tone }) => (
          <i key={name} class={tone} style={{ flexGrow: value / all }} />
        ))}
      </div>
      <table>
        <tbody>
          {parts.map(({ name, value, tone, text, href }) => (
            <tr key={name}>
              <th scope="row">
                <i class={`swatch ${tone}`} />
                {href ? <a href={href}>{name}</a> : name}
              </th>
              <td>{text}</td>
              <td>{percent(value / all)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

interface ColumnsProps {
  readonly rows: readonly (readonly number[])[]
  readonly tones: readonly string[]
  readonly label: string
  readonly height?: number
  readonly current?: number
  readonly names?: readonly string[]
  readonly href?: (index: number) => string
  /** Number of columns that there will be. Existing ones keep their places. */
  readonly planned?: number
}
/** One column for each step, stacked to scale and aligned with the charts. */
export function Columns({ rows, tones, label, height = 44, current, names = [], href, planned = 0 }: ColumnsProps) {
  const most = Math.max(...rows.map((row) => row.reduce((a, b) => a + b, 0)), 1e-9)
  const style = { height: `${height}px` }
  const bar = (row: readonly number[]) =>
    row.map((value, index) => value > 0 && <i key={tones[index]} class={tones[index]} style={{ height: `${(100 * value) / most}%` }} />)
  if (!href)
    // With another step all columns are drawn anew, like a chart.
    return (
      <div class="columns" key={rows.length} style={style} role="img" aria-label={label}>
        {rows.map((row, index) => (
          <span key={names[index] ?? index} class={hoverStep.value === index ? 'on' : ''}>
            {bar(row)}
          </span>
        ))}
      </div>
    )
  return (
    <nav class="columns" style={style} aria-label={label}>
      {rows.map((row, index) => (
        <a
          key={names[index] ?? index}
          href={href(index)}
          aria-label={names[index]}
          aria-current={index === current ? 'true' : undefined}
          title={names[index]}
        >
          {bar(row)}
        </a>
      ))}
      {planned > rows.length && <span style={{ flexGrow: planned - rows.length }} />}
    </nav>
  )
}
