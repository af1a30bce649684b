/** Splits a stream of server-sent events (WHATWG HTML, section 9.2) into the data of its events. */
export interface EventReader {
  push(chunk: Uint8Array): string[]
  /** The data of an event that no blank line follows. */
  finish(): string[]
}

/** A reader for one stream: lines end with LF, CR LF or CR, a multi-line event is joined, names and comments are dropped. */
export function createEventReader(): EventReader {
  const decoder = new TextDecoder()
  let buffer = ''
  let data: string | null = null

  function readLine(line: string, events: string[]): void {
    if (line === '') {
      if (data !== null) events.push(data)
      data = null
    } else if (line.startsWith('data:')) {
      const value = line.slice(line.charCodeAt(5) === 0x20 ? 6 : 5)
      data = data === null ? value : `${data}\n${value}`
    } else if (line === 'data') {
      data = data === null ? '' : `${data}\n`
    }
  }

  function read(text: string, last: boolean): string[] {
    const events: string[] = []
    // A CR at the end may be the first half of a CR LF.
    const held = !last && text.endsWith('\r') ? 1 : 0
    const lines = text.slice(0, text.length - held).split(/\r\n|\n|\r/)
    buffer = lines.pop()! + text.slice(text.length - held)
    for (const line of lines) readLine(line, events)
    return events
  }

  return {
    push: (chunk) => read(buffer + decoder.decode(chunk, { stream: true }), false),
    finish: () => read(`${buffer}${decoder.decode()}\n\n`, true),
  }
}
