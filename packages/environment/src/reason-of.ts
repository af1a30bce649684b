import { SdkHttpError } from '@modelcontextprotocol/client'

/** The messages of an error and of its causes. The last is usually the one that helps. */
export function reasonOf(error: unknown): string {
  const messages: string[] = []
  for (let one = error; one instanceof Error && messages.length < 5; one = one.cause ?? (one as AggregateError).errors?.[0]) {
    const { message, code } = one as NodeJS.ErrnoException
    const status = one instanceof SdkHttpError && !/\b\d{3}\b/.test(message) ? ` (HTTP ${one.status})` : ''
    const text = `${message || code || one.name}${status}`
    if (!messages.some((other) => other.includes(text))) messages.push(text)
  }
  return messages.length ? messages.join(': ') : String(error)
}
