// Lines over steps or times, on one cursor.
import { type Signal, signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { brief } from './format.ts'
import type { Multiple } from './multiples.ts'
import { css, theme } from './theme.ts'

/** Place of the step under the pointer, shared by every chart; `null` if there is none. */
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
  /** Place of the point under the pointer, if the axis is not that of steps. */
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
              ...axis,
              size: 22,
              grid: { show: false },
              space: 60,
              // Only the evaluation lies before the first step.
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
/** A line, under its name, its value at the pointer or its last one, and its range. */
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
