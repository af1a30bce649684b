/** Data of the server-sent events in a text that ends with a whole event; comments and other fields are skipped. */
export function eventData(text: string): string[] {
  return text
    .split(/\r?\n/)
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(line[5] === ' ' ? 6 : 5))
}

/**
 * Splits a stream of bytes into the data of server-sent events, each on one line as inference servers write them. `push` hands
 * over the events that are complete; `rest` is the beginning of the next one.
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
