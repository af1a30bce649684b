// Tokens as lines, of which those on screen are drawn: 131,072 tokens scroll like a hundred.
import { observeWindowOffset, observeWindowRect, Virtualizer, windowScroll } from '@tanstack/virtual-core'
import { Component } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks'
import { clip, integer, visible } from './format.ts'
import { toLines } from './lines.ts'
import { type Colouring, type Token, toneOf } from './token-stream.ts'

/** Characters of one token that are shown in the stream; the inspector has more. */
const longToken = 44
const heights = { prompt: 24, sampled: 29, turn: 12 }
const gutterWidth = 88

const piece = (token: Token) => visible(clip(token.text, longToken))

const canvas = document.createElement('canvas').getContext('2d')!
const widths = new Map<string, number>()
/** Width of a text in the font of the stream. Texts of tokens repeat, so each is measured once. */
function widthOf(text: string, size: number): number {
  const name = `${size} ${text}`
  const cached = widths.get(name)
  if (cached !== undefined) return cached
  canvas.font = `${size}px 'Geist Mono', monospace`
  const { width } = canvas.measureText(text)
  widths.set(name, width)
  return width
}

interface StreamProps {
  readonly tokens: readonly Token[]
  readonly chosen: number
  readonly colouring: Colouring
  readonly onChoose: (position: number) => void
  readonly onHover: (position: number | null) => void
}

interface PiecesProps {
  readonly tokens: readonly Token[]
  /** Position of the chosen token, `null` where it is in another line. */
  readonly chosen: number | null
  readonly colouring: Colouring
}

/** The tokens of a line, drawn again only where they change. With useMemo in its place, earlier drawings would stay in memory. */
class Pieces extends Component<PiecesProps> {
  override shouldComponentUpdate({ tokens, chosen, colouring }: PiecesProps) {
    return tokens !== this.props.tokens || chosen !== this.props.chosen || colouring !== this.props.colouring
  }

  override render({ tokens, chosen, colouring }: PiecesProps) {
    return (
      <span class="text">
        {tokens.map((token) => (
          // Arrow keys move between tokens: twenty thousand stops of the Tab key would help nobody.
          <span
            key={token.position}
            data-at={token.position}
            class={`token ${toneOf(token, colouring)}${token.position === chosen ? ' chosen' : ''}`}
          >
            {piece(token)}
          </span>
        ))}
      </span>
    )
  }
}

/** Position of the token that an event is of. */
const positionOf = ({ target }: Event): number | null => {
  const at = (target as HTMLElement).dataset['at']
  return at === undefined ? null : Number(at)
}

export function Stream({ tokens, chosen, colouring, onChoose, onHover }: StreamProps) {
  const box = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(0)
  const [, redraw] = useReducer((count: number) => count + 1, 0)
  useLayoutEffect(() => {
    const element = box.current!
    const measure = () => setWidth(element.clientWidth)
    measure()
    const sized = new ResizeObserver(measure)
    sized.observe(element)
    return () => sized.disconnect()
  }, [])
  const gutter = width < 560 ? 0 : gutterWidth
  const lines = useMemo(() => {
    if (width === 0) return []
    // Each token has padding and margin; a line keeps room for its border.
    return toLines(tokens, width - gutter - 16, (token) => widthOf(piece(token), token.origin === 'sampled' ? 13 : 12) + 4)
  }, [tokens, width, gutter])
  const counts = useMemo(() => {
    const list: { prompt: number; sampled: number }[] = []
    for (const { turn, origin } of tokens) {
      list[turn] ??= { prompt: 0, sampled: 0 }
      list[turn][origin === 'sampled' ? 'sampled' : 'prompt'] += 1
    }
    return list
  }, [tokens])

  const heightOf = (index: number) => {
    const line = lines[index]!
    const title = line.startsTurn && gutter === 0 ? 24 : 0
    return (line.isSampled ? heights.sampled : heights.prompt) + (line.startsTurn && index > 0 ? heights.turn : 0) + title
  }
  const [virtualizer] = useState(
    () =>
      new Virtualizer<Window, HTMLDivElement>({
        ...{ count: 0, getScrollElement: () => window, estimateSize: () => heights.sampled },
        ...{ observeElementRect: observeWindowRect, observeElementOffset: observeWindowOffset, scrollToFn: windowScroll },
        initialOffset: () => window.scrollY,
      }),
  )
  const margin = box.current ? box.current.getBoundingClientRect().top + window.scrollY : 0
  virtualizer.setOptions({
    ...virtualizer.options,
    ...{ count: lines.length, estimateSize: heightOf, overscan: 12, scrollMargin: margin, onChange: () => redraw(undefined) },
  })
  useLayoutEffect(() => {
    const unmount = virtualizer._didMount()
    return unmount
  }, [virtualizer])
  useLayoutEffect(() => {
    virtualizer.measure()
  }, [virtualizer, lines])
  useLayoutEffect(() => virtualizer._willUpdate())

  const lineOf = (position: number) => {
    let [low, high] = [0, lines.length - 1]
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (lines[middle]!.tokens[0]!.position <= position) low = middle
      else high = middle - 1
    }
    return low
  }
  // The chosen token comes into view where it is not, below what sticks to the top.
  useEffect(() => {
    if (lines.length === 0) return
    const index = lineOf(chosen)
    let top = margin
    for (let before = 0; before < index; before++) top += heightOf(before)
    const bottom = top + heightOf(index)
    const sheet = window.innerWidth < 760 ? window.innerHeight * 0.42 : 40
    if (top < window.scrollY + 110 && index > 0) window.scrollTo({ top: Math.max(0, top - 160) })
    else if (bottom > window.scrollY + window.innerHeight - sheet) window.scrollTo({ top: bottom - window.innerHeight + sheet + 80 })
  }, [chosen, lines])

  return (
    <div
      ref={box}
      class="stream"
      role="group"
      aria-label="Tokens; arrow keys move"
      onMouseLeave={() => onHover(null)}
      onMouseOver={(event) => {
        const position = positionOf(event)
        if (position !== null) onHover(position)
      }}
      onClick={(event) => {
        const position = positionOf(event)
        if (position !== null) onChoose(position)
      }}
      style={{ height: `${virtualizer.getTotalSize()}px` }}
    >
      {virtualizer.getVirtualItems().map(({ index, start, key }) => {
        const line = lines[index]
        if (!line) return null
        const turn = line.tokens[0]!.turn
        const { prompt, sampled } = counts[turn]!
        const isSecond = !line.startsPart && !line.isSampled && lines[index - 1]?.startsTurn
        const label = line.startsTurn ? (
          <b>turn {turn + 1}</b>
        ) : isSecond ? (
          `${integer(prompt)} prompt`
        ) : line.isSampled && line.startsPart ? (
          `${integer(sampled)} sampled`
        ) : (
          ''
        )
        return (
          <div
            key={key}
            class={`line-of-tokens${line.isSampled ? ' own' : ''}${line.startsTurn && index > 0 ? ' first' : ''}${gutter === 0 ? ' narrow' : ''}`}
            style={{ transform: `translateY(${start - margin}px)`, height: `${heightOf(index)}px` }}
          >
            {(gutter > 0 || line.startsTurn) && (
              <span class="of-turn">
                {label}
                {gutter === 0 && ` ${integer(prompt)} prompt, ${integer(sampled)} sampled`}
              </span>
            )}
            <Pieces
              tokens={line.tokens}
              chosen={line.tokens[0]!.position <= chosen && chosen <= line.tokens.at(-1)!.position ? chosen : null}
              colouring={colouring}
            />
          </div>
        )
      })}
    </div>
  )
}
