/** What the head of an answer says that matters here. */
export interface ResponseHead {
  readonly status: number
  readonly contentType: string
  readonly retryAfter: string | null
  /** The connection may serve another request behind this answer. */
  readonly keepAlive: boolean
  /** Seconds that the server keeps an idle connection, where it says so. */
  readonly keepAliveSeconds: number | null
}

/** How the end of a body is told. */
export type Framing = { readonly kind: 'none' | 'chunked' | 'close' } | { readonly kind: 'length'; readonly length: number }

/** An answer that is not HTTP/1.1, or whose length cannot be told. */
export class ResponseError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ResponseError'
  }
}

export const notHttp = () => new ResponseError('its answer is not HTTP/1.1')

const statusLine = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [^\r\n]*)?$/
const fieldName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/** Reads the lines of a head, without the empty one that ends it (RFC 9112, sections 4 and 5). Throws ResponseError. */
export function readHead(text: string): { readonly head: ResponseHead; readonly framing: Framing } {
  let to = text.indexOf('\r\n')
  const line = statusLine.exec(to < 0 ? text : text.slice(0, to))
  if (!line) throw notHttp()
  const status = Number(line[2])
  let contentType = ''
  let retryAfter: string | null = null
  let length: string | null = null
  let encoding: string | null = null
  let connection = ''
  let keepAliveSeconds: number | null = null
  while (to >= 0) {
    const from = to + 2
    to = text.indexOf('\r\n', from)
    const end = to < 0 ? text.length : to
    const colon = text.indexOf(':', from)
    if (colon <= from || colon >= end) throw badField()
    const written = text.slice(from, colon)
    const name = written.toLowerCase()
    switch (name) {
      case 'content-length': {
        const value = text.slice(colon + 1, end).trim()
        if (!/^\d{1,15}$/.test(value) || (length !== null && length !== value)) throw badLength()
        length = value
        break
      }
      case 'transfer-encoding':
        encoding =
          (encoding === null ? '' : `${encoding},`) +
          text
            .slice(colon + 1, end)
            .trim()
            .toLowerCase()
        break
      case 'content-type':
        contentType ||= text.slice(colon + 1, end).trim()
        break
      case 'retry-after':
        retryAfter ??= text.slice(colon + 1, end).trim()
        break
      case 'connection':
        connection += `,${text
          .slice(colon + 1, end)
          .trim()
          .toLowerCase()}`
        break
      case 'keep-alive': {
        const seconds = /timeout=(\d{1,9})/i.exec(text.slice(colon + 1, end))?.[1]
        if (seconds !== undefined) keepAliveSeconds = Number(seconds)
        break
      }
      default:
        if (!fieldName.test(written)) throw badField()
    }
  }
  if (encoding !== null && (encoding !== 'chunked' || length !== null)) throw badLength()
  const framing = framingOf(status, encoding, length)
  const said = connection === '' ? [] : connection.split(/\s*,\s*/)
  const keepAlive = framing.kind !== 'close' && (line[1] === '1' ? !said.includes('close') : said.includes('keep-alive'))
  return { head: { status, contentType, retryAfter, keepAlive, keepAliveSeconds }, framing }
}

const badField = () => new ResponseError('a header of its answer is malformed')
const badLength = () => new ResponseError('the length of its answer cannot be told')

/** RFC 9112, section 6.3. */
function framingOf(status: number, encoding: string | null, length: string | null): Framing {
  if (status < 200 || status === 204 || status === 304) return { kind: 'none' }
  if (encoding !== null) return { kind: 'chunked' }
  return length === null ? { kind: 'close' } : { kind: 'length', length: Number(length) }
}
