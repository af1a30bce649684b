/** Calls `each` with where the data of every server-sent event stands in a text that ends with a whole event; comments and other fields are skipped. */
export function eachEvent(text: string, each: (start: number, end: number) => void): void {
  let from = 0
  while (from < text.length) {
    let to = text.indexOf('\n', from)
    if (to < 0) to = text.length
    const end = text.charCodeAt(to - 1) === 13 ? to - 1 : to
    if (text.startsWith('data:', from)) each(text.charCodeAt(from + 5) === 32 ? from + 6 : from + 5, end)
    from = to + 1
  }
}

/** Data of the server-sent events in a text that ends with a whole event. */
export function eventData(text: string): string[] {
  const data: string[] = []
  eachEvent(text, (start, end) => data.push(text.slice(start, end)))
  return data
}

/**
 * Splits a stream of bytes into the data of server-sent events, each on one line as inference servers write them. `push` hands
 * over the events that ended; `rest` is what stands behind the last of them.
 */
export function createEventReader(onEvent: (data: string) => void): { push(chunk: Uint8Array): void; rest(): string } {
  const decoder = new TextDecoder()
  let pending = ''
  return {
    push(chunk) {
      const text = pending + decoder.decode(chunk, { stream: true })
      const end = text.lastIndexOf('\n') + 1
      pending = end === text.length ? '' : text.slice(end)
      if (end > 0) for (const data of eventData(text.slice(0, end))) onEvent(data)
    },
    rest: () => pending,
  }
}
