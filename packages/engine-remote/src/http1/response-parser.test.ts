import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ResponseHead } from './response-head.ts'
import { ResponseParser } from './response-parser.ts'

interface Heard {
  readonly head: ResponseHead
  readonly body: string
  readonly ended: boolean
}

/** What a parser says of bytes that come in pieces of the given sizes, and then the end of the connection. */
function hear(bytes: Buffer, sizes: readonly number[] = [], finish = true): Heard[] {
  const heard: { head: ResponseHead; body: string; ended: boolean }[] = []
  const parser = new ResponseParser({
    onHead: (head) => void heard.push({ head, body: '', ended: false }),
    onBody: (piece) => {
      heard.at(-1)!.body += piece.toString('latin1')
    },
    onEnd: () => {
      heard.at(-1)!.ended = true
    },
  })
  let from = 0
  for (const size of sizes) {
    if (from + size >= bytes.length) break
    parser.push(bytes.subarray(from, from + size))
    from += size
  }
  if (from < bytes.length) parser.push(bytes.subarray(from))
  if (finish) parser.finish()
  return heard
}

const text = (...lines: string[]) => Buffer.from(lines.join('\r\n'), 'latin1')
const body = fc.string({ unit: 'binary', maxLength: 300 }).map((given) => Buffer.from(given).toString('latin1'))
const token = fc.stringMatching(/^[a-z]{1,8}$/)
const status = fc.constantFrom(200, 201, 400, 404, 429, 500, 503)

function chunked(pieces: readonly string[], extension: string, trailer: readonly string[]): string {
  const written = pieces.filter((piece) => piece !== '').map((piece) => `${piece.length.toString(16)}${extension}\r\n${piece}\r\n`)
  return `${written.join('')}0\r\n${trailer.map((each) => `${each}\r\n`).join('')}\r\n`
}

/** An answer as a server may write it, and the body that it holds. */
const answer = fc
  .record({
    status,
    fields: fc.array(fc.tuple(token, token), { maxLength: 4 }),
    interim: fc.boolean(),
    pieces: fc.array(body, { maxLength: 5 }),
    framing: fc.constantFrom('length', 'chunked'),
    extension: fc.constantFrom('', ';a=b', ' ; x'),
    trailer: fc.constantFrom<string[]>([], ['x-sum: 12']),
    upper: fc.boolean(),
  })
  .map(({ status, fields, interim, pieces, framing, extension, trailer, upper }) => {
    const whole = pieces.join('')
    const given = fields.map(([name, value]) => `x-${name}: ${value}`)
    const how = framing === 'length' ? `Content-Length: ${whole.length}` : 'Transfer-Encoding: chunked'
    const lines = [`HTTP/1.1 ${status} Some Reason`, 'content-type: a/b', ...given, upper ? how : how.toLowerCase(), '', '']
    const written = framing === 'length' ? whole : chunked(pieces, extension, trailer)
    return { status, whole, text: `${interim ? 'HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n' : ''}${lines.join('\r\n')}${written}` }
  })

const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 200 })

describe('answers', () => {
  test('are read the same however their bytes are cut', () => {
    fc.assert(
      fc.property(fc.array(answer, { minLength: 1, maxLength: 4 }), sizes, (answers, sizes) => {
        const bytes = Buffer.from(answers.map(({ text }) => text).join(''), 'latin1')
        const heard = hear(bytes, sizes)
        expect(heard.map(({ head, body, ended }) => [head.status, head.contentType, body, ended])).toEqual(
          answers.map(({ status, whole }) => [status, 'a/b', whole, true]),
        )
      }),
      { numRuns: 150 },
    )
  })

  test('whose bytes are wrong anywhere are an error or another answer, never a hang or a crash', () => {
    fc.assert(
      fc.property(answer, fc.nat(), fc.integer({ min: 0, max: 255 }), sizes, ({ text }, place, byte, sizes) => {
        const bytes = Buffer.from(text, 'latin1')
        bytes[place % bytes.length] = byte
        try {
          hear(bytes, sizes)
        } catch (error) {
          expect((error as Error).name).toBe('ResponseError')
        }
      }),
      { numRuns: 150 },
    )
  })

  test('that end with their connection do', () => {
    const bytes = text('HTTP/1.0 200 OK', 'content-type: text/plain', '', 'all of it')
    expect(hear(bytes)).toMatchObject([{ body: 'all of it', ended: true, head: { keepAlive: false } }])
    expect(hear(bytes, [], false)).toMatchObject([{ body: 'all of it', ended: false }])
  })

  test('that are cut do not end', () => {
    expect(hear(text('HTTP/1.1 200 OK', 'content-length: 10', '', 'half'))).toMatchObject([{ body: 'half', ended: false }])
    expect(hear(text('HTTP/1.1 200 OK', 'transfer-encoding: chunked', '', '4', 'half', ''))).toMatchObject([{ body: 'half', ended: false }])
  })

  test.each([204, 304])('of status %i have no body', (status) => {
    expect(hear(text(`HTTP/1.1 ${status} x`, 'content-length: 5', '', ''))).toMatchObject([{ body: '', ended: true }])
  })

  test.each([
    ['HTTP/1.1', [], true],
    ['HTTP/1.1', ['connection: Close'], false],
    ['HTTP/1.1', ['connection: x, close'], false],
    ['HTTP/1.0', [], false],
    ['HTTP/1.0', ['Connection: keep-alive'], true],
  ])('%s with %j keep the connection: %s', (version, fields, kept) => {
    expect(hear(text(`${version} 200 OK`, 'content-length: 0', ...fields, '', ''))).toMatchObject([{ head: { keepAlive: kept } }])
  })

  test('say how long to wait, and how long an idle connection lives', () => {
    const bytes = text('HTTP/1.1 503', 'Retry-After: 7', 'keep-alive: timeout=5, max=100', 'content-length: 0', '', '')
    expect(hear(bytes)).toMatchObject([{ head: { status: 503, retryAfter: '7', keepAliveSeconds: 5 } }])
  })
})

describe('what is no answer', () => {
  const ok = 'HTTP/1.1 200 OK'
  test.each([
    ['garbage', text('no http at all')],
    ['garbage without a line end', Buffer.from('\u0000\u0001')],
    ['HTTP/2', text('HTTP/2 200', '', '')],
    ['a status of two digits', text('HTTP/1.1 20 OK', '', '')],
    ['a change of protocol', text('HTTP/1.1 101 Switching Protocols', 'upgrade: x', '', '')],
    ['a field without a colon', text(ok, 'content-length 5', '', '')],
    ['a folded field', text(ok, 'x-a: 1', ' content-length: 5', '', '')],
    ['a space before the colon', text(ok, 'content-length : 5', '', '')],
    ['a length that is none', text(ok, 'content-length: 5, 5', '', '')],
    ['a negative length', text(ok, 'content-length: -5', '', '')],
    ['two lengths', text(ok, 'content-length: 5', 'content-length: 6', '', '')],
    ['a length and chunks', text(ok, 'content-length: 5', 'transfer-encoding: chunked', '', '')],
    ['another encoding', text(ok, 'transfer-encoding: gzip, chunked', '', '')],
    ['chunked twice', text(ok, 'transfer-encoding: chunked', 'transfer-encoding: chunked', '', '')],
    ['a chunk without a size', text(ok, 'transfer-encoding: chunked', '', '', 'x')],
    ['a size that is no number', text(ok, 'transfer-encoding: chunked', '', 'xyz', '')],
    ['a size above all memory', text(ok, 'transfer-encoding: chunked', '', 'ffffffffffffffff', '')],
    ['a chunk that is longer than its size', text(ok, 'transfer-encoding: chunked', '', '2', 'abc', '')],
    ['a size line that does not end', Buffer.concat([text(ok, 'transfer-encoding: chunked', '', '1;'), Buffer.alloc(5000, 'x')])],
    ['a head that does not end', Buffer.concat([text(ok, 'x: '), Buffer.alloc(70_000, 'x')])],
  ])('%s is refused, in one piece and byte by byte', (_, bytes) => {
    expect(() => hear(bytes)).toThrow(/answer|protocol/)
    expect(() =>
      hear(
        bytes,
        Array.from({ length: bytes.length }, () => 1),
      ),
    ).toThrow(/answer|protocol/)
  })
})
