export interface ServerEvent {
  readonly event: string
  readonly data: string
}

/** The events of a text/event-stream, whole ones only; comments and ids are passed over. */
export async function* readServerEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent, void, void> {
  const decoder = new TextDecoder()
  let pending = ''
  for await (const chunk of body) {
    pending += decoder.decode(chunk, { stream: true })
    const blocks = pending.split('\n\n')
    pending = blocks.pop()!
    for (const block of blocks) {
      const fields = block.split('\n').map((line) => /^(\w+): ?(.*)$/.exec(line))
      const field = (name: string) => fields.flatMap((each) => (each?.[1] === name ? [each[2]!] : [])).join('\n')
      const data = field('data')
      if (data !== '') yield { event: field('event'), data }
    }
  }
}
