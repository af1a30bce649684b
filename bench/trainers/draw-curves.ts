/** What of a run is drawn. */
export interface Curve {
  readonly name: string
  /** Mean reward of the rollouts of each batch, in order. */
  readonly rewards: readonly number[]
  /** Held-out reward before and after; `null` where it was not measured. */
  readonly before: number | null
  readonly after: number | null
}

const size = { width: 860, height: 420, left: 48, right: 190, top: 40, bottom: 44 }
const plot = { width: size.width - size.left - size.right, height: size.height - size.top - size.bottom }
/** A colour and a dash for each line, so that it is told apart without the colour too (Okabe and Ito 2008). */
const styles = [
  ['#0072b2', ''],
  ['#d55e00', '7 3'],
  ['#009e73', '2 3'],
  ['#cc79a7', '10 3 2 3'],
  ['#8a6100', '4 4'],
  ['#17191c', '1 2'],
] as const

/** An SVG of all curves over the same axes: lines are moving means of five batches, rings the held-out reward before and after. */
export function drawCurves(curves: readonly Curve[], title: string): string {
  const last = Math.max(2, ...curves.map(({ rewards }) => rewards.length))
  const x = (batch: number) => round(size.left + ((batch - 1) / (last - 1)) * plot.width)
  const y = (reward: number) => round(size.top + (1 - Math.min(1, Math.max(0, reward))) * plot.height)
  const grid = [0, 0.25, 0.5, 0.75, 1].map(
    (reward) =>
      `<path d="M${size.left} ${y(reward)}h${plot.width}" stroke="#e3e3de"/><text x="${size.left - 8}" y="${y(reward) + 4}" text-anchor="end">${reward}</text>`,
  )
  const ticks = [...new Set([1, Math.round((1 + last) / 2), last])].map(
    (batch) => `<text x="${x(batch)}" y="${size.height - 24}" text-anchor="middle">${batch}</text>`,
  )
  const labels = spread(curves.map(({ rewards, after }) => y(after ?? rewards.at(-1) ?? 0)))
  const lines = curves.map(({ name, rewards, before, after }, index) => {
    const [colour, dash] = styles[index % styles.length]!
    const points = movingMean(rewards, 5).map((reward, at) => `${x(at + 1)} ${y(reward)}`)
    const ring = (at: number, reward: number | null) =>
      reward === null ? '' : `<circle cx="${at}" cy="${y(reward)}" r="4" fill="#fff" stroke="${colour}" stroke-width="2"/>`
    const end = x(Math.max(1, rewards.length))
    const text = `${name}  ${shown(before)} to ${shown(after)}`
    return [
      points.length > 0 && `<path d="M${points.join('L')}" fill="none" stroke="${colour}" stroke-width="2" stroke-dasharray="${dash}"/>`,
      ring(x(1), before),
      ring(end, after),
      `<path d="M${end + 6} ${y(after ?? rewards.at(-1) ?? 0)}L${size.width - size.right + 10} ${labels[index]}" stroke="${colour}" stroke-width=".5"/>`,
      `<text x="${size.width - size.right + 14}" y="${labels[index]! + 4}" fill="${colour}">${toXml(text)}</text>`,
    ]
      .filter(Boolean)
      .join('')
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${size.height}" font-family="system-ui, sans-serif" font-size="12" fill="#454a52"><title>${toXml(title)}</title><rect width="100%" height="100%" fill="#fff"/><text x="${size.left}" y="22" font-size="14" fill="#17191c">${toXml(title)}</text>${grid.join('')}${ticks.join('')}<text x="${size.left + plot.width / 2}" y="${size.height - 8}" text-anchor="middle">batch of rollouts</text>${lines.join('\n')}</svg>\n`
}

const round = (value: number) => Math.round(value * 10) / 10
const shown = (value: number | null) => (value === null ? '?' : value.toFixed(2))
const toXml = (text: string) => text.replace(/[&<>]/g, (letter) => `&#${letter.charCodeAt(0)};`)

/** The mean of each value with up to `width` - 1 before it. */
function movingMean(values: readonly number[], width: number): number[] {
  return values.map((_, at) => {
    const part = values.slice(Math.max(0, at + 1 - width), at + 1)
    return part.reduce((sum, value) => sum + value, 0) / part.length
  })
}

/** Heights of labels at least 16 apart, in the order of what they label. */
function spread(heights: readonly number[]): number[] {
  const placed: number[] = []
  let least = size.top
  for (const index of [...heights.keys()].sort((a, b) => heights[a]! - heights[b]!)) {
    placed[index] = Math.max(least, heights[index]!)
    least = placed[index]! + 16
  }
  return placed
}
