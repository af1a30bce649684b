export interface ServerEvent {
  /** '' if it has none. */
  readonly name: string
  readonly data: string
}

/** Splits a stream of server-sent events (WHATWG HTML, section 9.2). */
export interface EventReader {
  /** The events that end in this chunk. */
  push(chunk: Uint8Array): ServerEvent[]
  /** An event that is not ended by a blank line. */
  finish(): ServerEvent[]
}

const lineEnd = /\r\n|\n|\r/g

/** Creates a reader for one stream. Lines end with LF, CR LF or CR, a multi-line event is joined, comments and ids are skipped. */
export function createEventReader(): EventReader {
  const decoder = new TextDecoder()
  /** The unfinished line. It only grows, so that a long one in many chunks is not searched again and again. */
  let line = ''
  let heldReturn = false
  let name = ''
  let data: string | null = null

  function endLine(events: ServerEvent[]): void {
    const colon = line.indexOf(':')
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    if (line === '') {
      if (data !== null) events.push({ name, data })
      name = ''
      data = null
    } else if (field === 'data') data = data === null ? value : `${data}\n${value}`
    else if (field === 'event') name = value
    line = ''
  }

  function read(chunk: string, last: boolean): ServerEvent[] {
    const events: ServerEvent[] = []
    const text = heldReturn ? `\r${chunk}` : chunk
    // A CR at the end may be the first half of a CR LF.
    heldReturn = !last && text.endsWith('\r')
    const end = heldReturn ? text.length - 1 : text.length
    let start = 0
    for (const match of text.slice(0, end).matchAll(lineEnd)) {
      line += text.slice(start, match.index)
      endLine(events)
      start = match.index + match[0].length
    }
    line += text.slice(start, end)
    return events
  }

  return {
    push: (chunk) => read(decoder.decode(chunk, { stream: true }), false),
    finish: () => read(`${decoder.decode()}\n\n`, true),
  }
}
