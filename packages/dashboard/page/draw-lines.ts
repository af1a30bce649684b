// Draws lines of tokens on a canvas. As elements, those of one screen took five times as long as a frame.
import { clip, integer, visible } from './format.ts'
import { firstLine, type StreamLine } from './lines.ts'
import { type Colouring, type Token, toneOf } from './token-stream.ts'

/** Most characters of one token in the stream. The inspector shows more. */
const longToken = 44
/** Pixels beside the text of a token. */
const padding = 2
/** Pixels between the gutter and the first token. */
const indent = 8

/** The drawn text of a token, and its width in pixels. */
interface Piece {
  readonly text: string
  readonly width: number
}
/** Pieces in one size of letters, by the text of their token. Texts repeat, so each is measured once. */
interface Letters {
  readonly font: string
  readonly pieces: Map<string, Piece>
}
const letters = (size: number): Letters => ({ font: `${size}px 'Geist Mono', ui-monospace, monospace`, pieces: new Map() })
const [ofPrompt, ofSampled] = [letters(12), letters(13)]
const measured = document.createElement('canvas').getContext('2d')!

function pieceOf({ origin, text }: Token): Piece {
  const { font, pieces } = origin === 'sampled' ? ofSampled : ofPrompt
  const cached = pieces.get(text)
  if (cached) return cached
  const shown = visible(clip(text, longToken))
  measured.font = font
  const piece = { text: shown, width: Math.ceil(measured.measureText(shown).width) + 2 * padding }
  pieces.set(text, piece)
  return piece
}
export const widthOf = (token: Token) => pieceOf(token).width

/** Reads a colour of the style sheet by its name. */
export type ReadColor = (name: string) => string

/** The colours of the current theme. */
export function readColors(): ReadColor {
  const style = getComputedStyle(document.documentElement)
  const colors = new Map<string, string>()
  return (name) => {
    const color = colors.get(name) ?? style.getPropertyValue(name)
    colors.set(name, color)
    return color
  }
}

const isFaint = (tone: string) => tone === 'context' || tone === 'o-template'
/** Whether a token is hatched, because it was not trained or not computed. */
const isHatched = (tone: string) => tone === 'untrained' || tone === 'o-sampled'
/** Colour of the line below a token. Those of tools and users are thick. */
const lineOf = (tone: string) => (tone === 'o-tool' ? '--tool' : tone === 'o-user' ? '--user' : isFaint(tone) ? '--line' : '--line-strong')

interface Drawing {
  readonly lines: readonly StreamLine[]
  /** Pixels of all lines that are above the canvas. */
  readonly from: number
  /** Size of the canvas, in pixels of the page. */
  readonly width: number
  readonly height: number
  /** Room for names beside the lines; 0 if they are above. */
  readonly gutter: number
  readonly chosen: number
  readonly colouring: Colouring
  readonly color: ReadColor
  /** Numbers of prompt tokens and of sampled tokens, for each turn. */
  readonly counts: readonly { readonly prompt: number; readonly sampled: number }[]
}

/** Draws the lines that a canvas of `width` and `height` shows. */
export function drawLines(canvas: HTMLCanvasElement, drawing: Drawing): void {
  const { lines, from, width, height, color } = drawing
  const [columns, rows] = [width, height].map((size) => Math.round(size * devicePixelRatio)) as [number, number]
  if (canvas.width !== columns) canvas.width = columns
  if (canvas.height !== rows) canvas.height = rows
  const context = canvas.getContext('2d', { alpha: false })!
  context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0)
  context.fillStyle = color('--paper')
  context.fillRect(0, 0, width, height)
  context.textBaseline = 'middle'
  context.translate(0, -from)
  const hatch = hatchOf(context, color)
  for (let index = firstLine(lines, ({ bottom }) => bottom < from); index < lines.length; index++) {
    const top = lines[index - 1]?.bottom ?? 0
    if (top > from + height) break
    drawName(context, drawing, index, top)
    drawTokens(context, drawing, lines[index]!, hatch)
  }
}

/** Draws the name of a line: its turn and the number of its tokens. */
function drawName(context: CanvasRenderingContext2D, { lines, width, gutter, color, counts }: Drawing, index: number, top: number): void {
  const line = lines[index]!
  const { turn } = line.tokens[0]!
  const { prompt, sampled } = counts[turn]!
  const write = (text: string, x: number, y: number, name: string, font: string) => {
    context.fillStyle = color(name)
    context.font = `${font} Geist, system-ui, sans-serif`
    context.fillText(text, x, y)
  }
  if (line.startsTurn && index > 0) {
    context.fillStyle = color('--line')
    context.fillRect(0, Math.round(top) + 6, width, 1)
  }
  const middle = line.bottom - line.rowHeight / 2
  const size = [`${integer(prompt)} prompt`, `${integer(sampled)} sampled`]
  if (line.startsTurn) {
    const y = gutter > 0 ? middle : middle - line.rowHeight
    write(`turn ${turn + 1}`, 0, y, '--ink', '550 13px')
    if (gutter === 0) write(size.join(', '), 52, y, '--muted', '12px')
  } else if (gutter > 0) {
    if (line.isSampled && line.startsPart) write(size[1]!, 0, middle, '--muted', '12px')
    else if (!line.isSampled && lines[index - 1]!.startsTurn) write(size[0]!, 0, middle, '--muted', '12px')
  }
}

function drawTokens(
  context: CanvasRenderingContext2D,
  { gutter, chosen, colouring, color }: Drawing,
  { tokens, isSampled, bottom, rowHeight }: StreamLine,
  hatch: CanvasPattern,
): void {
  const [top, height] = [bottom - rowHeight + 3, rowHeight - 6]
  if (isSampled) {
    context.fillStyle = color('--ink')
    context.fillRect(gutter, bottom - rowHeight, 2, rowHeight)
  }
  context.font = (isSampled ? ofSampled : ofPrompt).font
  let x = gutter + indent
  for (const token of tokens) {
    const tone = toneOf(token, colouring)
    const { text, width } = pieceOf(token)
    const background = isHatched(tone) ? hatch : color(`--${tone}`)
    if (background !== '') {
      context.fillStyle = background
      context.fillRect(x, top, width - 2, height)
    }
    if (tone !== 'context') {
      const thickness = tone === 'o-tool' || tone === 'o-user' ? 2 : 1
      context.fillStyle = color(lineOf(tone))
      context.fillRect(x, top + height - thickness, width - 2, thickness)
    }
    context.fillStyle = color(isFaint(tone) ? '--muted' : '--ink')
    context.fillText(text, x + 1, top + height / 2)
    if (token.position === chosen) {
      context.strokeStyle = color('--ink')
      context.lineWidth = 2
      context.strokeRect(x, top, width - 2, height)
    }
    x += width
  }
}

const hatchTile = 6
function hatchOf(context: CanvasRenderingContext2D, color: ReadColor): CanvasPattern {
  const tile = document.createElement('canvas')
  tile.width = hatchTile
  tile.height = hatchTile
  const lines = tile.getContext('2d')!
  lines.strokeStyle = color('--line-strong')
  // The corners belong to the lines of neighbouring tiles.
  for (const shift of [-hatchTile, 0, hatchTile]) {
    lines.beginPath()
    lines.moveTo(shift - 1, hatchTile + 1)
    lines.lineTo(shift + hatchTile + 1, -1)
    lines.stroke()
  }
  return context.createPattern(tile, 'repeat')!
}

/** The token at a place in all lines; `null` if there is none. */
export function tokenAt(lines: readonly StreamLine[], gutter: number, x: number, y: number): Token | null {
  const line = lines[firstLine(lines, ({ bottom }) => bottom <= y)]
  if (!line || y < line.bottom - line.rowHeight) return null
  let left = gutter + indent
  for (const token of line.tokens) {
    if (x < left) return null
    left += widthOf(token)
    if (x < left) return token
  }
  return null
}
