// Tokens as lines on a canvas that stays on screen while the page scrolls, so that 131,072 tokens scroll like a hundred.
import type { Signal } from '@preact/signals'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { drawLines, readColors, tokenAt, widthOf } from './draw-lines.ts'
import { firstLine, toLines } from './lines.ts'
import { theme } from './theme.ts'
import type { Colouring, Token } from './token-stream.ts'

const gutterWidth = 88
/** Pixels right of the last token of a line. */
const margin = 16

interface StreamProps {
  readonly tokens: readonly Token[]
  readonly chosen: number
  readonly colouring: Colouring
  readonly onChoose: (position: number) => void
  /** Set to the position of the token under the pointer. */
  readonly hovered: Signal<number | null>
}

/** Numbers of prompt tokens and of sampled tokens, for each turn. */
function countTurns(tokens: readonly Token[]) {
  const counts: { prompt: number; sampled: number }[] = []
  for (const { turn, origin } of tokens) {
    counts[turn] ??= { prompt: 0, sampled: 0 }
    counts[turn][origin === 'sampled' ? 'sampled' : 'prompt'] += 1
  }
  return counts
}

export function Stream({ tokens, chosen, colouring, onChoose, hovered }: StreamProps) {
  const box = useRef<HTMLDivElement>(null)
  const canvas = useRef<HTMLCanvasElement>(null)
  const [{ width, height }, resize] = useState({ width: 0, height: 0 })
  useLayoutEffect(() => {
    const measure = () => resize({ width: box.current!.clientWidth, height: window.innerHeight })
    measure()
    const sized = new ResizeObserver(measure)
    sized.observe(box.current!)
    addEventListener('resize', measure)
    return () => {
      sized.disconnect()
      removeEventListener('resize', measure)
    }
  }, [])
  const gutter = width < 560 ? 0 : gutterWidth
  const lines = useMemo(
    () => (width === 0 ? [] : toLines(tokens, { width: width - gutter - margin, isNamedAbove: gutter === 0 }, widthOf)),
    [tokens, width, gutter],
  )
  const counts = useMemo(() => countTurns(tokens), [tokens])
  const color = useMemo(readColors, [theme.value])
  const total = lines.at(-1)?.bottom ?? 0
  const shown = Math.min(height, total)
  // Drawing does not go through the tree of elements, because a scroll changes only the canvas.
  useLayoutEffect(() => {
    const draw = () => {
      const from = canvas.current!.getBoundingClientRect().top - box.current!.getBoundingClientRect().top
      drawLines(canvas.current!, { lines, from, width, height: shown, gutter, chosen, colouring, color, counts })
    }
    if (lines.length > 0) draw()
    addEventListener('scroll', draw)
    return () => removeEventListener('scroll', draw)
  }, [lines, width, shown, gutter, chosen, colouring, color, counts])
  // Scrolls the chosen token into view, below the parts that stick to the top.
  useEffect(() => {
    if (lines.length === 0) return
    const index = firstLine(lines, (line) => line.tokens.at(-1)!.position < chosen)
    const start = box.current!.getBoundingClientRect().top + window.scrollY
    const top = start + (lines[index - 1]?.bottom ?? 0)
    const bottom = start + lines[index]!.bottom
    const sheet = window.innerWidth < 760 ? window.innerHeight * 0.42 : 40
    if (top < window.scrollY + 110 && index > 0) window.scrollTo({ top: Math.max(0, top - 160) })
    else if (bottom > window.scrollY + window.innerHeight - sheet) window.scrollTo({ top: bottom - window.innerHeight + sheet + 80 })
  }, [chosen, lines])

  const at = ({ clientX, clientY }: MouseEvent) => {
    const { left, top } = box.current!.getBoundingClientRect()
    return tokenAt(lines, gutter, clientX - left, clientY - top)?.position ?? null
  }
  return (
    <div
      ref={box}
      class="stream"
      style={{ height: `${total}px` }}
      onMouseLeave={() => {
        hovered.value = null
      }}
      onMouseMove={(event) => {
        hovered.value = at(event)
      }}
      onClick={(event) => {
        const position = at(event)
        if (position !== null) onChoose(position)
      }}
    >
      <canvas
        ref={canvas}
        role="img"
        aria-label="Tokens; arrow keys move, and the chosen one is described"
        style={{ width: `${width}px`, height: `${shown}px` }}
      />
    </div>
  )
}
