// What the pages share: charts, reward dots, bars, keys, empty states.
import { type Signal, signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { brief, integer, percent, points, signed, stepName } from './format.ts'
import { type Group, isEvaluation, placeOf, sampleName } from './groups-of.ts'
import type { Multiple } from './multiples.ts'
import { hrefs } from './route.ts'

export const theme = signal<'light' | 'dark'>(matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')
try {
  const kept = localStorage.getItem('theme')
  if (kept === 'light' || kept === 'dark') theme.value = kept
} catch {
  // A page that opens from disk may have no storage.
}
theme.subscribe((value) => {
  document.documentElement.dataset['theme'] = value
})
export function turnTheme(): void {
  theme.value = theme.value === 'dark' ? 'light' : 'dark'
  try {
    localStorage.setItem('theme', theme.value)
  } catch {
    // The colours hold until the page is left.
  }
}
const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

/** Place of the step under the pointer, shared by every chart; `null` where it rests. */
export const hoverStep = signal<number | null>(null)

interface ChartEnd {
  readonly at: number
  readonly value: number
  readonly interval: readonly [number, number]
  readonly isAfter: boolean
}
interface ChartProps {
  readonly label: string
  readonly xs: readonly number[]
  readonly values: readonly (number | null)[]
  readonly band?: readonly [readonly number[], readonly number[]]
  readonly more?: readonly {
    readonly xs: readonly number[]
    readonly values: readonly (number | null)[]
    readonly color: string
    readonly dash: number[]
  }[]
  readonly height: number
  readonly axes?: boolean
  readonly range?: readonly [number, number]
  readonly color?: string
  readonly dash?: number[]
  readonly onPick?: (index: number) => void
  readonly ends?: readonly ChartEnd[]
  readonly zero?: boolean
  readonly xUnit?: string
  /** Place of the point under the pointer, where the axis is another than that of steps. */
  readonly hovered?: Signal<number | null>
}

/** A line over steps, with its band and further lines over the same axis. */
export function Chart(props: ChartProps) {
  const { label, height, onPick, hovered = hoverStep } = props
  const box = useRef<HTMLDivElement>(null)
  const latest = useRef(props)
  latest.current = props
  const signature = JSON.stringify([props.xs, props.values, props.band, props.more, props.ends])
  useEffect(() => {
    const element = box.current!
    let plot = draw(element, latest.current)
    const unsubscribe = theme.subscribe(() => {
      plot.destroy()
      plot = draw(element, latest.current)
    })
    const click = () => {
      if (latest.current.onPick && hovered.peek() !== null) latest.current.onPick(hovered.peek()!)
    }
    element.addEventListener('click', click)
    const sized = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }))
    sized.observe(element)
    return () => {
      unsubscribe()
      element.removeEventListener('click', click)
      sized.disconnect()
      plot.destroy()
    }
  }, [signature, height])
  return (
    <div
      ref={box}
      class={`chart${onPick ? ' pick' : ''}`}
      style={{ height: `${height}px` }}
      role="img"
      aria-label={label}
      onMouseLeave={() => {
        hovered.value = null
      }}
    />
  )
}

function draw(element: HTMLElement, props: ChartProps): uPlot {
  const { band, more = [], height, axes = false, range, color = '--data', ends = [], zero = false, xUnit, hovered = hoverStep } = props
  const xs = [...new Set([...props.xs, ...more.flatMap((each) => each.xs)])].sort((a, b) => a - b)
  const onto = (own: readonly number[], values: readonly (number | null)[]) => {
    const at = new Map(own.map((x, index) => [x, values[index] ?? null]))
    return xs.map((x) => at.get(x) ?? null)
  }
  const values = onto(props.xs, props.values)
  const bands = band ? [onto(props.xs, band[0]), onto(props.xs, band[1])] : []
  const others = more.map((each) => onto(each.xs, each.values))
  const ink = css(color)
  const axis = { stroke: css('--muted'), font: '11px Geist', grid: { stroke: css('--line'), width: 1 }, ticks: { show: false }, gap: 4 }
  const numbers = [...values, ...bands.flat(), ...others.flat()].filter((value) => value !== null)
  const [low, high] = range ?? [zero ? Math.min(0, ...numbers) : Math.min(...numbers), Math.max(...numbers)]
  const pad = (high - low || Math.abs(high) || 1) * 0.06
  const [first, last] = [xs[0] ?? 0, xs.at(-1) ?? 1]
  const start = Math.min(first, ...ends.map(({ at }) => at)) - (ends.length > 0 ? 1 : 0)
  const end = Math.max(last, first + 1, ...ends.map(({ at }) => at)) + (ends.length > 0 ? 0.6 : 0)
  const line = (stroke: string, of: readonly (number | null)[], dash?: number[]) => ({
    stroke,
    width: 1.75,
    spanGaps: false,
    // A line needs two points.
    points: { show: of.filter((value) => value !== null).length < 3 },
    ...(dash && { dash }),
  })
  const hidden = { stroke: 'transparent', points: { show: false } }
  return new uPlot(
    {
      width: element.clientWidth,
      height,
      legend: { show: false },
      padding: axes ? [8, 10, 0, 0] : [3, 1, 3, 1],
      cursor: {
        y: false,
        points: { size: (_: uPlot, series: number) => (series === 1 ? 6 : 0), fill: ink, stroke: css('--surface'), width: 1.5 },
        drag: { x: false, y: false },
        sync: { key: xUnit ?? 'steps' },
      },
      scales: { x: { time: false, range: () => [start, end] }, y: { range: () => (range ? [low, high] : [low - pad, high + pad]) } },
      axes: axes
        ? [
            {
              ...{ ...axis, size: 22, grid: { show: false }, space: 60 },
              // Before the first step lies the evaluation alone.
              ...(!xUnit && {
                incrs: [1, 5, 10, 20, 50, 100, 500, 1000, 5000],
                values: (_: uPlot, splits: number[]) => splits.map((step) => (step < 0 ? '' : String(step))),
              }),
            },
            range && range[0] === 0 && range[1] < 1.1
              ? {
                  ...axis,
                  size: 34,
                  splits: () => [0, 0.25, 0.5, 0.75, 1],
                  values: (_: uPlot, splits: number[]) => splits.map((value) => (value % 1 === 0 ? String(value) : value.toFixed(2))),
                }
              : { ...axis, size: 44 },
          ]
        : [{ show: false }, { show: false }],
      series: [
        {},
        line(ink, values, props.dash),
        ...bands.map(() => hidden),
        ...more.map((each, index) => line(css(each.color), others[index]!, each.dash)),
      ],
      ...(band ? { bands: [{ series: [3, 2] as [number, number], fill: css('--data-wash') }] } : {}),
      hooks: {
        setCursor: [
          (self) => {
            if (self.cursor.event === undefined && self.cursor.idx != null) return
            hovered.value = (self.cursor.left ?? -1) < 0 ? null : (self.cursor.idx ?? null)
          },
        ],
        draw: [
          (self) => {
            for (const each of ends) drawEnd(self, each)
          },
        ],
      },
    },
    [xs, values, ...bands, ...others] as uPlot.AlignedData,
    element,
  )
}

function drawEnd(plot: uPlot, { at, value, interval, isAfter }: ChartEnd): void {
  const { ctx } = plot
  const [x, y] = [plot.valToPos(at, 'x', true), plot.valToPos(value, 'y', true)]
  ctx.save()
  ctx.strokeStyle = css('--ink')
  ctx.fillStyle = isAfter ? css('--ink') : css('--surface')
  ctx.lineWidth = 1.5 * devicePixelRatio
  ctx.beginPath()
  ctx.moveTo(x, plot.valToPos(interval[1], 'y', true))
  ctx.lineTo(x, plot.valToPos(interval[0], 'y', true))
  ctx.stroke()
  ctx.beginPath()
  ctx.arc(x, y, 4 * devicePixelRatio, 0, 7)
  ctx.fill()
  ctx.stroke()
  ctx.restore()
}

interface SmallChartProps {
  readonly multiple: Multiple
  readonly label: string
  readonly xs: readonly number[]
  readonly xUnit?: string
  readonly hovered?: Signal<number | null>
  readonly onPick?: (index: number) => void
}
/** A line under its name, its value at the pointer or its last, and its range. */
export function SmallChart({
  multiple: { name, values, note, zero = false, format = brief },
  hovered = hoverStep,
  ...chart
}: SmallChartProps) {
  const there = values.filter((value) => value !== null)
  const value = values[hovered.value ?? values.length - 1] ?? null
  return (
    <figure>
      <figcaption>
        <span title={name}>{name}</span>
        <b>{value === null ? '–' : format(value)}</b>
        <small>{note}</small>
        <small>
          {format(Math.min(...there))} – {format(Math.max(...there))}
        </small>
      </figcaption>
      <Chart {...chart} values={values} height={38} zero={zero} hovered={hovered} color="--ink-soft" />
    </figure>
  )
}

/** A reward as a shape: full at 1, an open ring at 0, part-filled between, dashed without one; never by colour alone. */
export function Dot({ reward, label }: { reward: number | null; label?: string }) {
  const kind = reward === null ? 'none' : reward >= 1 ? 'one' : reward <= 0 ? 'zero' : 'part'
  const style = kind === 'part' ? { backgroundImage: `linear-gradient(to top, var(--good) ${100 * reward!}%, transparent 0)` } : undefined
  return label ? (
    <i class={`dot ${kind}`} style={style} role="img" aria-label={label} />
  ) : (
    <i class={`dot ${kind}`} style={style} aria-hidden="true" />
  )
}

/** More samples than this stand as shares: dots would not fit the row. */
const mostDots = 16
/** The rewards of a group, each a way to its rollout. */
export function Dots({ group, current, href = hrefs.rollout }: { group: Group; current?: string; href?: (key: string) => string }) {
  const rows = group.rows.length <= mostDots ? group.rows : group.rows.filter((row, index) => index < mostDots || row.key === current)
  return (
    <span class="dots">
      {rows.map((row) => {
        const text = `${sampleName(row)}, ${row.status === 'done' ? `reward ${row.reward === null ? 'not scored' : points(row.reward)}` : row.status}`
        return (
          <a href={href(row.key)} key={row.key} aria-current={row.key === current ? 'true' : undefined} aria-label={text} title={text}>
            <Dot reward={row.reward} />
          </a>
        )
      })}
      {group.rows.length > rows.length && <small>+{group.rows.length - rows.length}</small>}
    </span>
  )
}

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
}
/** One column a step, stacked to scale, in step with the charts. */
export function Columns({ rows, tones, label, height = 44, current, names = [], href }: ColumnsProps) {
  const most = Math.max(...rows.map((row) => row.reduce((a, b) => a + b, 0)), 1e-9)
  const style = { height: `${height}px` }
  const bar = (row: readonly number[]) =>
    row.map((value, index) => value > 0 && <i key={tones[index]} class={tones[index]} style={{ height: `${(100 * value) / most}%` }} />)
  if (!href)
    return (
      <div class="columns" style={style} role="img" aria-label={label}>
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
    </nav>
  )
}

export function Section({
  title,
  note,
  children,
  class: name = '',
}: {
  title: string
  note?: ComponentChildren
  children?: ComponentChildren
  class?: string
}) {
  return (
    <section class={name}>
      <header>
        <h2>{title}</h2>
        {note && <p>{note}</p>}
      </header>
      {children}
    </section>
  )
}

interface ChipsProps<Name extends string> {
  /** What they choose, for who does not see them. */
  label: string
  /** Of each its name, and what stands on it. */
  of: readonly (readonly [name: Name, content: ComponentChildren])[]
  chosen: Name | null
  onChoose: (name: Name) => void
}

/** Buttons of which one is chosen. */
export function Chips<Name extends string>({ label, of, chosen, onChoose }: ChipsProps<Name>) {
  return (
    <div class="chips" role="group" aria-label={label}>
      {of.map(([name, content]) => (
        <button type="button" key={name} aria-pressed={name === chosen} onClick={() => onChoose(name)}>
          {content}
        </button>
      ))}
    </div>
  )
}

/** A line that is cut in its middle, before its last `end` characters or more: questions of a kind and paths of agents differ there. */
export function Middle({ text, end = 24 }: { text: string; end?: number }) {
  const at = Math.max(0, text.length - end)
  const cut = Math.max(text.lastIndexOf(' ', at), text.lastIndexOf('/', at))
  if (cut < 0)
    return (
      <span class="middle">
        <span>{text}</span>
      </span>
    )
  return (
    <span class="middle">
      <span>{text.slice(0, cut)}</span>
      <span>{text.slice(cut).slice(0, 2 * end)}</span>
    </span>
  )
}

interface StretchProps {
  /** Of what. */
  readonly name: string
  /** Place of the first that is shown, how many are, and how many there are. */
  readonly from: number
  readonly count: number
  readonly total: number
  readonly go: (place: number) => void
}
/** Which stretch of a long list is shown, with the ways to those beside it. */
export function Stretch({ name, from, count, total, go }: StretchProps) {
  if (count === total) return null
  return (
    <p class="stretch">
      {name} {integer(from + 1)} – {integer(from + count)} of {integer(total)}
      <button type="button" class="link" disabled={from === 0} onClick={() => go(from - 1)}>
        Earlier
      </button>
      <button type="button" class="link" disabled={from + count >= total} onClick={() => go(from + count)}>
        Later
      </button>
    </p>
  )
}

const copied = signal('')
/** A command to copy; `under` is the beginning that a heading already says. */
export function Command({ text, what, under = '' }: { text: string; what: string; under?: string }) {
  const copy = () => {
    void navigator.clipboard?.writeText(text)
    copied.value = text
    setTimeout(() => {
      copied.value = ''
    }, 1200)
  }
  return (
    <div class="command">
      <span>{what}</span>
      <button type="button" title="Copy" onClick={copy}>
        <code>{text.slice(under.length).trim()}</code>
        <b aria-live="polite">{copied.value === text ? 'copied' : 'copy'}</b>
      </button>
    </div>
  )
}

export function Empty({
  title,
  children,
  command,
  main,
}: {
  title: string
  children?: ComponentChildren
  command?: string
  main?: boolean
}) {
  return (
    <div class="empty">
      {main ? <h1>{title}</h1> : <h2>{title}</h2>}
      <p>{children}</p>
      {command && <Command what="In the terminal" text={command} />}
    </div>
  )
}

/** Where in the run this is, and the group's samples to go to. */
export function Trail({ group, rollout, href }: { group: Group; rollout: string; href: (key: string) => string }) {
  const row = group.rows.find(({ key }) => key === rollout) ?? group.rows[0]!
  const place = placeOf(row)
  return (
    <div class="trail">
      <a href={hrefs.step(place)}>{stepName(place)}</a>
      <span>›</span>
      <a href={hrefs.step(place, { group: group.id })}>{`${isEvaluation(place) ? 'task' : 'group'} ${group.label}`}</a>
      <span>›</span>
      <b>{sampleName(row)}</b>
      <Dots group={group} current={rollout} href={href} />
    </div>
  )
}

export function Facts({ of }: { of: readonly (readonly [name: string, value: ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {of.map(([name, value], index) => (
        <div key={name || index}>
          <dt class={name ? '' : 'unseen'}>{name || 'see'}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

export const Advantage = ({ value, none = 'not trained' }: { value: number | null; none?: string }) => (
  <span class={value === null || value === 0 ? 'quiet' : value > 0 ? 'up' : 'down'}>{value === null ? none : signed(value)}</span>
)

/** Keys of the page on screen; the shell adds its own. */
export function useKeys(keys: Readonly<Record<string, () => void>>): void {
  const latest = useRef(keys)
  latest.current = keys
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return
      if (event.target instanceof Element && event.target.closest('input, select, textarea, dialog')) return
      // On a link or a button, Enter is that element's.
      if (event.key === 'Enter' && event.target instanceof Element && event.target.closest('a, button')) return
      const action = latest.current[event.key]
      if (!action) return
      event.preventDefault()
      action()
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [])
}
