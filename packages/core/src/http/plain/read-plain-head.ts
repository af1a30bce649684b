import type { IncomingHttpHeaders } from 'node:http'

/** The head of a request whose body has a length. */
export interface PlainHead {
  readonly url: string
  readonly headers: IncomingHttpHeaders
  /** Bytes of the body. */
  readonly length: number
  /** Where the body begins in what was read. */
  readonly bodyFrom: number
  /** The client closes the connection behind the answer. */
  readonly last: boolean
}

const headEnd = Buffer.from('\r\n\r\n')
const requestLine = /^POST (\/[!-~]*) HTTP\/1\.1$/
/** What no head has: control characters, and half an end of line. */
const notInHead = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)|(?<!\r)\n/
const fieldName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const fieldLength = /^\d{1,10}$/

/** Fields that change how a request is read. */
const notPlain: ReadonlySet<string> = new Set(['transfer-encoding', 'expect', 'upgrade', 'trailer', 'te'])

/**
 * The head of a POST as nearly all clients write it: whole in the bytes that were read, no field twice, its body's length said
 * once (RFC 9112, sections 3 to 6). `null` for any other, be it rare or wrong: that is for a parser that knows all of HTTP.
 */
export function readPlainHead(bytes: Buffer, maxBytes: number): PlainHead | null {
  const end = bytes.indexOf(headEnd)
  if (end < 0 || end + headEnd.length > maxBytes) return null
  const text = bytes.toString('latin1', 0, end)
  if (notInHead.test(text)) return null
  let to = text.indexOf('\r\n')
  const line = to < 0 ? null : requestLine.exec(text.slice(0, to))
  if (!line) return null
  const headers: Record<string, string> = {}
  while (to >= 0) {
    const from = to + 2
    to = text.indexOf('\r\n', from)
    const colon = text.indexOf(':', from)
    if (colon < 0) return null
    const name = text.slice(from, colon).toLowerCase()
    if (!fieldName.test(name) || notPlain.has(name) || headers[name] !== undefined) return null
    headers[name] = trim(text, colon + 1, to < 0 ? text.length : to)
  }
  const { host, connection, 'content-length': length } = headers
  if (host === undefined || length === undefined || !fieldLength.test(length)) return null
  const last = connection !== undefined && connection.toLowerCase() === 'close'
  if (connection !== undefined && !last && connection.toLowerCase() !== 'keep-alive') return null
  return { url: line[1]!, headers, length: Number(length), bodyFrom: end + headEnd.length, last }
}

/** Without the blanks and tabs around a value; other white space is content. */
function trim(text: string, start: number, stop: number): string {
  let from = start
  let to = stop
  while (from < to && isBlank(text.charCodeAt(from))) from++
  while (to > from && isBlank(text.charCodeAt(to - 1))) to--
  return text.slice(from, to)
}

const isBlank = (code: number) => code === 32 || code === 9
