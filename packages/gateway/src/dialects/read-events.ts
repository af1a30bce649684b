/** Splits a stream of server-sent events (WHATWG HTML, section 9.2) into the data of its events. */
export interface EventReader {
  push(chunk: Uint8Array): string[]
  /** The data of an event that no blank line follows. */
  finish(): string[]
}

const lineEnd = /\r\n|\n|\r/g

/** A reader for one stream: lines end with LF, CR LF or CR, a multi-line event is joined, names and comments are dropped. */
export function createEventReader(): EventReader {
  const decoder = new TextDecoder()
  /** The line that has begun: only grows, so that a long one in many chunks is not looked through again and again. */
  let line = ''
  let heldReturn = false
  let data: string | null = null

  function endLine(events: string[]): void {
    if (line === '') {
      if (data !== null) events.push(data)
      data = null
    } else if (line.startsWith('data:')) {
      const value = line.slice(line.charCodeAt(5) === 0x20 ? 6 : 5)
      data = data === null ? value : `${data}\n${value}`
    } else if (line === 'data') {
      data = data === null ? '' : `${data}\n`
    }
    line = ''
  }

  function read(chunk: string, last: boolean): string[] {
    const events: string[] = []
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
