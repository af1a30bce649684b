/** A run of text of a PDF page, as pdf.js returns it. Lengths are in points; the origin is at the lower left. */
export interface PdfText {
  readonly str: string
  readonly transform: readonly number[]
  readonly width: number
  readonly hasEOL: boolean
}

interface Line {
  text: string
  size: number
  y: number
  end: number
}

/** Text larger than the body's by this factor is a heading. */
const headingFactor = 1.2
const titleFactor = 1.6

/** Markdown of a page, with lines in the order in which the page draws them, so that columns of an article stay apart. */
export function pageToMarkdown(items: readonly PdfText[]): string {
  const lines = toLines(items)
  const body = bodySize(lines)
  let text = ''
  let previous: Line | null = null
  for (const line of lines) {
    const content = line.text.trim()
    if (content === '') continue
    const isHeading = line.size >= body * headingFactor && content.length <= 200
    const wasHeading = previous !== null && previous.size >= body * headingFactor
    const gap = previous === null ? 0 : Math.abs(previous.y - line.y)
    if (previous !== null) text += isHeading || wasHeading || gap > line.size * 1.8 ? '\n\n' : '\n'
    text += isHeading ? `${line.size >= body * titleFactor ? '#' : '##'} ${content}` : content
    previous = line
  }
  return text
}

function toLines(items: readonly PdfText[]): Line[] {
  const lines: Line[] = []
  let line: Line | null = null
  for (const { str, transform, width, hasEOL } of items) {
    const [a = 0, b = 0, , , x = 0, y = 0] = transform
    const size = Math.hypot(a, b)
    if (line === null || (str.trim() !== '' && Math.abs(line.y - y) > Math.max(line.size, size) / 2)) {
      if (str.trim() === '' && line === null) continue
      line = { text: '', size, y, end: x }
      lines.push(line)
    }
    const gap = x - line.end
    if (line.text !== '' && gap > size) line.text = `${line.text.trimEnd()}\t`
    else if (gap > size * 0.2 && !/\s$/.test(line.text)) line.text += ' '
    // A run of blanks is a position, not text.
    if (str.trim() === '') {
      if (width <= size && !/\s$/.test(line.text)) line.text += ' '
    } else {
      line.text += str.replaceAll('\0', '')
      line.size = Math.max(line.size, size)
      line.end = x + width
    }
    if (hasEOL) line = null
  }
  return lines
}

/** The size of most characters of the page. */
function bodySize(lines: readonly Line[]): number {
  const characters = new Map<number, number>()
  for (const { text, size } of lines) {
    const rounded = Math.round(size * 2) / 2
    characters.set(rounded, (characters.get(rounded) ?? 0) + text.length)
  }
  return [...characters].reduce((most, one) => (one[1] > most[1] ? one : most), [0, 0])[0]
}
